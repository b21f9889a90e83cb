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
  spec_.clear();
  for (const BatchItem& item : items) {
    const SequenceInput& input = item.input();
    batch_.Append(input.token_ids, input.positions, input.segment_ids);
    spec_.push_back(item.request->request.outputs);
  }
  Outputs outputs;
  if (absl::Status status = session_->Run(batch_, {.sequences = spec_}, outputs); !status.ok()) {
    return status;
  }
  CopyResults(items, outputs);
  return absl::OkStatus();
}

void BatchRunner::CopyResults(std::span<const BatchItem> items, const Outputs& outputs) const {
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t index = static_cast<int64_t>(i);
    SequenceResult& result = items[i].request->result.sequences[items[i].sequence];
    if (spec_[i].last_hidden_state) {
      const TensorView<const float, 2>& states = outputs.last_hidden_state;  // [tokens, hidden]
      result.last_hidden_state =
          CopyRows(states, batch_.seq_start(index), batch_.len(index), states.dim(1));
    }
    if (spec_[i].pooling != Pooling::kNone) {
      const TensorView<const float, 2>& pooled = outputs.pooled;  // [batch, hidden]
      const int64_t dims = spec_[i].dims == 0 ? pooled.dim(1) : spec_[i].dims;
      result.pooled = CopyRows(pooled, index, 1, dims);
    }
  }
}

}  // namespace attendant
