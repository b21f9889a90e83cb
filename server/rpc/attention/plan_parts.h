// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/attention.pb.h"
#include "server/models/attention_model.h"
#include "server/rpc/attention/operation.h"
#include "server/rpc/wire/messages.h"

// What attend_messages.h is made of. Each part reads some fields of a request into the task.
namespace attendant {

template <typename... Parts>
absl::Status InvalidAttend(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

inline constexpr int kMaxTensorRank = 4;

// query, key, value and their lengths.
absl::Status PlanOperands(const v1::AttendRequest& request, AttentionTask& task);

// The kind and its parameters, without their values. After PlanOperands.
absl::Status PlanKind(const v1::AttendRequest& request, const AttentionModel& model,
                      AttentionTask& task);

// Checks multi_head's configuration and counts its weights; packs them.
absl::Status PlanMultiHead(const v1::AttendRequest& request, AttentionTask& task);
absl::Status PackMultiHead(const v1::MultiHeadAttention& kind, AttentionTask& task);

// Notes that a module makes `heads` heads of the operands, which must have none.
absl::Status SplitHeads(int64_t heads, AttentionTask& task);

// After PlanKind: masks and ALiBi have the heads of the scores.
absl::Status PlanMasks(const v1::AttendRequest& request, AttentionTask& task);
absl::Status PlanPositions(const v1::AttendRequest& request, AttentionTask& task);

// Heads that the scores have.
inline int64_t ScoreHeads(const AttentionTask& task) {
  return task.module_heads > 0 ? task.module_heads : task.call.query.heads;
}

// Where key and value come from: what was not sent is the one before. REQUIRES: query is set.
inline const v1::Tensor& KeySource(const v1::AttendRequest& request) {
  return request.has_key() ? request.key() : request.query();
}
inline const v1::Tensor& ValueSource(const v1::AttendRequest& request) {
  return request.has_value() ? request.value() : KeySource(request);
}

// Whether they need memory of their own: what was not sent shares the other's, unless positions
// make them differ.
inline bool OwnsKey(const v1::AttendRequest& request) { return request.has_key(); }
inline bool OwnsValue(const v1::AttendRequest& request, const TaskPositions& positions) {
  return request.has_value() || (positions.any() && !(positions.added() && positions.to_value));
}

// The tensor that is one of a kind's parameters, or null. Unset optional ones are no parameter.
struct ParameterField {
  const char* name;
  const v1::Tensor* tensor;
};
std::vector<ParameterField> ParameterFields(const v1::AttendRequest& request);

}  // namespace attendant
