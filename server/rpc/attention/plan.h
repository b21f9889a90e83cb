// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "attendant/v1/attention.pb.h"
#include "server/models/attention_model.h"
#include "server/models/model_registry.h"
#include "server/requests/number_format.h"
#include "server/rpc/attention/operation.h"

namespace attendant {

// Checks a request and counts the memory for its operands, operand_bytes, before any of it is
// spent: all its tensors are still where the message has them. INVALID_ARGUMENT names the field,
// and both shapes or numbers. `model` must outlive the task.
absl::StatusOr<std::unique_ptr<AttentionTask>> PlanAttend(const v1::AttendRequest& request,
                                                          const AttentionModel& model);

// Checks how the operands fit together, and measures what a planned task's computation and answer
// will take. Packs the weights that a request brings: its operand_bytes are to be paid for by now.
// REQUIRES of this and FillTask: `request` is the one that the task was planned for.
absl::Status MeasureAttend(const v1::AttendRequest& request, const AttentionModel& model,
                           int64_t max_response_bytes, AttentionTask& task);

// What a task's answer holds as f32.
int64_t ResponseBytes(const attention::Call& call, const attention::Cost& cost);

// Gives a measured task its operands. It does not refer to the request after that.
void FillTask(const v1::AttendRequest& request, AttentionTask& task);

// The number format that the answer is wanted in. INVALID_ARGUMENT: there is no such.
absl::StatusOr<NumberFormat> AnswerFormat(const v1::AttendRequest& request);

// Fills output and weights, and frees the task's.
void EncodeAttention(NumberFormat format, AttentionTask& task, v1::AttendResponse& response);

// What ListAttention tells of the kinds, and of a module. REQUIRES: `status.attention()` is not
// null.
void EncodeKinds(v1::ListAttentionResponse& response);
void EncodeModule(const ModelStatus& status, v1::AttentionModuleInfo& info);

}  // namespace attendant
