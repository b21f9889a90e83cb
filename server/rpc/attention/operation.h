// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/modules/module.h"
#include "kernels/attention/positions.h"
#include "kernels/core/attention_module.h"
#include "server/batching/request.h"
#include "server/requests/byte_budget.h"

namespace attendant {

// Where tokens stand, as a request says it; ALiBi is in the call's mask.
struct TaskPositions {
  bool sinusoidal = false;
  float base = attention::kDefaultBase;
  bool is_learned = false;
  std::vector<float> learned;  // [rows, query dim]
  bool to_value = false;       // sinusoidal and learned: added to the values too
  std::optional<attention::RotaryOptions> rotary;

  bool added() const { return sinusoidal || is_learned; }
  bool any() const { return added() || rotary.has_value(); }
};

// One side of the attention, or all values of one kind that a call points to.
using Buffer = std::vector<std::byte>;

// One request of attendant.v1.Attention in the kernels' words, with the memory that its call points
// into: a task stays where it is. Made by PlanAttend, MeasureAttend and FillTask.
class AttentionTask final : public Operation {
 public:
  int64_t tokens() const override { return call.queries.tokens() + call.keys.tokens(); }
  // Puts the positions in, and computes `out` and `weights`.
  absl::Status Run(ThreadPool& pool) override;

  attention::Call call;
  attention::Cost cost;
  TaskPositions positions;
  bool with_heads = false;    // the operands came with heads
  int64_t module_heads = 0;   // that a module makes of them; 0: there is none
  int64_t operand_bytes = 0;  // of everything below but the results
  ByteBudget::Share memory;   // operand_bytes of the requests' budget

  std::vector<int64_t> query_starts, key_starts;  // [batch + 1], of ragged sequences
  Buffer query;
  Buffer key;    // empty: the query's
  Buffer value;  // empty: the key's
  Buffer mask;
  std::vector<uint8_t> key_mask;
  std::vector<float> alibi_slopes;
  std::vector<std::vector<float>> parameter_values;
  std::vector<attention::Parameter> parameters;  // views of parameter_values
  ModuleConfig own_config;                       // of a module whose weights the request brings
  std::unique_ptr<const attention::Module> own_module;

  Buffer out;                  // [.., out_dim], in the call's dtype
  std::vector<float> weights;  // as attention::Outputs says; empty when not wanted

 private:
  absl::Status AddTable(attention::InputRows operand, const attention::Sequences& sequences,
                        Buffer& values, ThreadPool& pool) const;
  absl::Status PutPositionsIn(ThreadPool& pool);
};

}  // namespace attendant
