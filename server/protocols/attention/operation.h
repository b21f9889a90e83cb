// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/modules/module.h"
#include "server/batching/request.h"
#include "server/models/attention_model.h"
#include "server/protocols/attention/plan.h"
#include "server/requests/memory/byte_budget.h"

namespace attendant {

// An Attend request as an operation of the batcher, with the memory that its call points into.
class AttendOperation final : public Operation {
 public:
  using Buffer = std::vector<std::byte>;

  // Packs the weights that the request brings, measures computation and answer, and copies the
  // plan's tensors, in this order. Does not refer to the request afterwards. `memory` accounts for
  // plan.operand_bytes. `model` must outlive the operation. INVALID_ARGUMENT names what does not
  // fit together, or the limit that the request exceeds.
  static absl::StatusOr<std::unique_ptr<AttendOperation>> Make(AttendPlan plan,
                                                               const AttentionModel& model,
                                                               int64_t max_response_bytes,
                                                               ByteBudget::Share memory);

  int64_t tokens() const override { return call_.queries.tokens() + call_.keys.tokens(); }
  int64_t cost() const override { return QueueUnits(cost_.operations); }
  // Adds the positions, and computes output and attention weights.
  absl::Status Run(ThreadPool& pool) override;

  const attention::Sequences& queries() const { return call_.queries; }
  DType dtype() const { return call_.dtype; }
  int64_t response_bytes() const;  // of output and attention weights, as f32

  // The results, once Run returned OK. Take*: at most once.
  std::vector<int64_t> out_shape() const;
  Buffer TakeOut() { return std::move(out_); }  // in dtype()
  bool has_weights() const { return cost_.weights_bytes > 0; }
  std::vector<int64_t> weights_shape() const;  // columns are keys; Linformer's are projected keys
  std::vector<float> TakeWeights() { return std::move(weights_); }

 private:
  AttendOperation(AttendPlan& plan, ByteBudget::Share memory);

  absl::Status PackModule(const MultiHeadPlan& plan);
  absl::Status Measure(const AttendPlan& plan, const AttentionModel& model,
                       int64_t max_response_bytes);
  void CopyTensors(const AttendPlan& plan);
  bool has_added_positions() const { return positions_.sinusoidal || !learned_positions_.empty(); }
  absl::Status AddPositions(ThreadPool& pool);
  absl::Status AddTable(const attention::PositionedRows& rows, ThreadPool& pool) const;

  const ByteBudget::Share memory_;
  const bool with_heads_;   // the operands came with heads
  const bool score_heads_;  // attention weights of each head have a dimension for the heads
  const std::vector<int64_t> query_starts_, key_starts_;  // call_ points into these and the rest
  const std::vector<float> alibi_slopes_;
  std::vector<attention::Parameter> parameters_;
  attention::Call call_;
  attention::Cost cost_;  // on the model's largest worker

  Buffer query_;
  Buffer key_;    // empty: the query's
  Buffer value_;  // empty: the key's
  Buffer mask_;
  std::vector<uint8_t> key_mask_;
  std::vector<std::vector<float>> parameter_values_;
  std::unique_ptr<const attention::Module> module_;
  AttendPositions positions_;             // without the learned table
  std::vector<float> learned_positions_;  // [rows, query dim]; empty: none

  Buffer out_;
  std::vector<float> weights_;
};

}  // namespace attendant
