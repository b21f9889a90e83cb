// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/attention.pb.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/positions.h"
#include "kernels/core/attention_module.h"
#include "server/models/attention_model.h"
#include "server/protocols/wire/messages.h"
#include "server/requests/formats/number_format.h"

// The checked plan of an AttendRequest. Copies no tensor.
namespace attendant {

// The positions that a request adds to its operands. ALiBi is in the call's mask instead.
struct AttendPositions {
  bool sinusoidal = false;
  float base = attention::kDefaultBase;
  std::optional<WireTensor> learned;  // [rows, query dim]
  bool to_value = false;              // sinusoidal and learned: added to the values too
  std::optional<attention::RotaryOptions> rotary;

  bool added() const { return sinusoidal || learned.has_value(); }
  bool any() const { return added() || rotary.has_value(); }
};

// multi_head with weights that the request brings.
struct MultiHeadPlan {
  // One weight [out, in] or bias [out] for each of query, key, value and output; weights first.
  static constexpr size_t kTensors = 8;

  ModuleConfig config;
  std::array<std::optional<WireTensor>, kTensors> tensors;  // a bias may be missing
};

// A request that has passed all checks of its own. Its tensors are views of the request, which must
// outlive the plan.
struct AttendPlan {
  AttendPlan() = default;
  AttendPlan(AttendPlan&&) = default;  // and not copied: `call` points into the vectors below
  AttendPlan& operator=(AttendPlan&&) = default;

  // All of the call but pointers to values, and the module of `multi_head`.
  attention::Call call;
  NumberFormat answer_format = NumberFormat::kF32;
  bool with_heads = false;   // the operands came with heads
  int64_t module_heads = 0;  // heads that a module makes of the operands; 0: there is no module
  // Memory for copies of the tensors, and for the packed weights of `multi_head`.
  int64_t operand_bytes = 0;

  std::vector<int64_t> query_starts, key_starts;  // [batch + 1], of ragged sequences
  WireTensor query, key, value;  // a key that was not sent is the query, a value the key
  // Memory of its own: it was sent, or positions make it differ from the query, or from the key.
  bool own_key = false;
  bool own_value = false;
  std::optional<WireTensor> mask;
  std::optional<WireTensor> key_mask;  // bool, one value for each key token
  std::vector<float> alibi_slopes;     // [heads]
  AttendPositions positions;
  std::vector<attention::Parameter> parameters;  // without values; call.parameters
  std::vector<WireTensor> parameter_tensors;     // their values, in the same order
  std::optional<MultiHeadPlan> multi_head;

  int64_t tokens() const { return call.queries.tokens() + call.keys.tokens(); }
  // Heads that the scores have.
  int64_t score_heads() const { return module_heads > 0 ? module_heads : call.query.heads; }
};

// INVALID_ARGUMENT names the field, and both shapes or numbers. UNIMPLEMENTED: the kind does not do
// that.
absl::StatusOr<AttendPlan> PlanAttend(const v1::AttendRequest& request,
                                      const AttentionModel& model);

// For the parts of the plan, below and in plan_*.h.
inline constexpr int kMaxTensorRank = 4;

template <typename... Parts>
absl::Status InvalidAttend(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// INVALID_ARGUMENT, naming the flag, for a `value` above the `limit` that it sets.
absl::Status CheckAttendLimit(absl::string_view what, int64_t value, int64_t limit,
                              absl::string_view flag);

}  // namespace attendant
