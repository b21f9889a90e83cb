// SPDX-License-Identifier: Apache-2.0
#include "server/batching/batch_runner.h"

#include <cstdint>
#include <exception>

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"

namespace attendant {
namespace {

// Rows [first, first + rows) of `from`, each cut to its first `columns` values.
// REQUIRES: rows == 1 or columns == from.dim(1).
std::vector<float> CopyRows(TensorView<const float, 2> from, int64_t first, int64_t rows,
                            int64_t columns) {
  ATTENDANT_CHECK(!from.empty() && first + rows <= from.dim(0) && columns <= from.dim(1));
  return std::vector<float>(from.row(first), from.row(first) + rows * columns);
}

// Makes room for what `selection` asks for of a sequence of `len` tokens.
LayerOutputs MakeRoom(const LayerSelection& selection, int64_t len, SequenceResult& result) {
  result.attention_weights.resize(static_cast<size_t>(selection.attention_maps() * len * len));
  result.hidden_states.resize(static_cast<size_t>(selection.hidden_values(len)));
  return {.attention_layers = selection.attention_layers,
          .attention_heads = selection.attention_heads,
          .attention_weights = result.attention_weights.data(),
          .hidden_layers = selection.hidden_layers,
          .hidden_states = result.hidden_states.data()};
}

}  // namespace

absl::Status BatchRunner::Run(std::span<const BatchItem> items) {
  try {
    return PackAndRun(items);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("a batch failed: ", error.what()));
  }
}

absl::Status BatchRunner::PackAndRun(std::span<const BatchItem> items) {
  batch_.Clear();
  outputs_.clear();
  layers_.clear();
  bool layers_asked_for = false;
  for (const BatchItem& item : items) {
    const EncodeWork& work = item.request->encode();
    const SequenceInput& input = work.sequences[item.sequence];
    batch_.Append(input.token_ids, input.positions, input.segment_ids);
    outputs_.push_back(work.outputs);
    layers_.push_back(
        MakeRoom(work.layers, input.len(), item.request->result.sequences[item.sequence]));
    layers_asked_for |= !work.layers.empty();
  }
  OutputSpec spec{.sequences = outputs_};
  if (layers_asked_for) spec.layers = layers_;
  Outputs outputs;
  if (absl::Status status = session_->Run(batch_, spec, outputs); !status.ok()) return status;
  CopyResults(items, outputs);
  return absl::OkStatus();
}

void BatchRunner::CopyResults(std::span<const BatchItem> items, const Outputs& outputs) const {
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t index = static_cast<int64_t>(i);
    SequenceResult& result = items[i].request->result.sequences[items[i].sequence];
    if (outputs_[i].last_hidden_state) {
      const TensorView<const float, 2>& states = outputs.last_hidden_state;  // [tokens, hidden]
      result.last_hidden_state =
          CopyRows(states, batch_.seq_start(index), batch_.len(index), states.dim(1));
    }
    if (outputs_[i].pooling != Pooling::kNone) {
      const TensorView<const float, 2>& pooled = outputs.pooled;  // [batch, hidden]
      const int64_t dims = outputs_[i].dims == 0 ? pooled.dim(1) : outputs_[i].dims;
      result.pooled = CopyRows(pooled, index, 1, dims);
    }
  }
}

}  // namespace attendant
