// SPDX-License-Identifier: Apache-2.0
#include "server/batching/runners/batch_runner.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"
#include "kernels/core/pooling.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

// Rows [first, first + rows) of `from`, each cut to its first `columns` values.
// REQUIRES: rows == 1 or columns == from.dim(1).
std::vector<float> CopyRows(TensorView<const float, 2> from, int64_t first, int64_t rows,
                            int64_t columns) {
  ATTENDANT_CHECK(!from.empty() && first + rows <= from.dim(0) && columns <= from.dim(1));
  return std::vector<float>(from.row(first), from.row(first) + rows * columns);
}

// Pools a sequence that the session does not pool: states [len, hidden] -> one vector, or one for
// each span. The spans have few times the tokens of the sequence, so one thread does it.
void PoolByRunner(const EncodeWork& work, const SequenceInput& input,
                  TensorView<const float, 2> states, std::vector<float>& pooled) {
  const size_t width = work.token_poolings.size() * static_cast<size_t>(states.dim(1));
  pooled.resize(std::max<size_t>(input.spans.size(), 1) * width);
  if (input.spans.empty()) {
    PoolTokens(states, input.positions, work.token_poolings, input.first_pooled, pooled.data());
  }
  for (size_t i = 0; i < input.spans.size(); ++i) {
    const TokenSpan span{std::max(input.spans[i].begin, input.first_pooled), input.spans[i].end};
    PoolSpan(states, input.positions, work.token_poolings, span, pooled.data() + i * width);
  }
}

// Makes room for the values of the layers of `work` for a sequence of `len` tokens.
LayerOutputs MakeRoom(const EncodeWork& work, int64_t len, SequenceResult& result) {
  const LayerSelection& selection = work.layers;
  result.attention_weights.resize(static_cast<size_t>(selection.attention_values(len)));
  result.hidden_states.resize(static_cast<size_t>(selection.hidden_values(len, work.hidden)));
  return {.attention_layers = selection.attention_layers,
          .attention_heads = selection.attention_heads,
          .attention_weights = result.attention_weights.data(),
          .hidden_layers = selection.hidden_layers,
          .hidden_states = result.hidden_states.data(),
          .attention_queries = selection.attention_queries};
}

}  // namespace

BatchRunner::BatchRunner(std::unique_ptr<Session> session, HeadRunners heads)
    : session_(std::move(session)),
      heads_(std::move(heads)),
      pool_(session_->pool() == nullptr ? own_pool_ : *session_->pool()) {}

int BatchRunner::HeadThreads(Session& session) {
  return session.pool() == nullptr ? 1 : session.pool()->threads();
}

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
    batch_.Append(input.token_ids, input.positions, input.segment_ids, input.keys);
    outputs_.push_back(work.outputs);
    outputs_.back().last_hidden_state |= !work.token_poolings.empty() || !work.tasks.empty();
    layers_.push_back(MakeRoom(work, input.len(), item.request->encode().results[item.sequence]));
    layers_asked_for |= !work.layers.empty();
  }
  OutputSpec spec{.sequences = outputs_};
  if (layers_asked_for) spec.layers = layers_;
  Outputs outputs;
  if (absl::Status status = session_->Run(batch_, spec, outputs); !status.ok()) return status;
  CopyResults(items, outputs);
  return RunHeads(items, outputs);
}

void BatchRunner::CopyResults(std::span<const BatchItem> items, const Outputs& outputs) const {
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t index = static_cast<int64_t>(i);
    const EncodeWork& work = items[i].request->encode();
    SequenceResult& result = items[i].request->encode().results[items[i].sequence];
    const TensorView<const float, 2>& states = outputs.last_hidden_state;  // [tokens, hidden]
    const int64_t first = batch_.seq_start(index), len = batch_.len(index);
    if (work.outputs.last_hidden_state) {
      result.last_hidden_state = CopyRows(states, first, len, states.dim(1));
    }
    if (!work.token_poolings.empty()) {
      PoolByRunner(work, work.sequences[items[i].sequence],
                   {states.row(first), {len, states.dim(1)}}, result.pooled);
    }
    if (outputs_[i].pooling != Pooling::kNone) {
      const TensorView<const float, 2>& pooled = outputs.pooled;  // [batch, hidden]
      const int64_t dims = outputs_[i].dims == 0 ? pooled.dim(1) : outputs_[i].dims;
      result.pooled = CopyRows(pooled, index, 1, dims);
    }
  }
}

absl::Status BatchRunner::RunHeads(std::span<const BatchItem> items, const Outputs& outputs) {
  for (size_t head = 0; head < heads_.size(); ++head) {
    for (int kind = 0; kind < kNumTaskKinds; ++kind) {
      FindInputs(items, outputs, head, static_cast<TaskKind>(kind));
      if (inputs_.empty()) continue;
      ATTENDANT_RETURN_IF_ERROR(heads_[head]->Run(inputs_, pool_));
    }
  }
  return absl::OkStatus();
}

void BatchRunner::FindInputs(std::span<const BatchItem> items, const Outputs& outputs, size_t head,
                             TaskKind kind) {
  inputs_.clear();
  for (size_t i = 0; i < items.size(); ++i) {
    const EncodeWork& work = items[i].request->encode();
    const SequenceInput& input = work.sequences[items[i].sequence];
    const int64_t first = batch_.seq_start(static_cast<int64_t>(i));
    const int64_t len = batch_.len(static_cast<int64_t>(i));
    std::vector<HeadResult>& results = items[i].request->encode().results[items[i].sequence].tasks;
    results.resize(work.tasks.size());
    for (size_t task = 0; task < work.tasks.size(); ++task) {
      if (work.tasks[task].head != head || work.tasks[task].options.kind != kind) continue;
      if (input.only_task >= 0 && input.only_task != static_cast<int32_t>(task)) continue;
      inputs_.push_back({.options = &work.tasks[task].options,
                         .token_ids = input.token_ids,
                         .states = {outputs.last_hidden_state.row(first),
                                    {len, outputs.last_hidden_state.dim(1)}},
                         .result = &results[task]});
    }
  }
}

}  // namespace attendant
