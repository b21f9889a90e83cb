// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/attention/plan.h"

#include "kernels/core/status_macros.h"
#include "server/protocols/attention/plan_kind.h"
#include "server/protocols/attention/plan_masks.h"
#include "server/protocols/attention/plan_operands.h"
#include "server/requests/request_run.h"

namespace attendant {
namespace {

absl::Status PlanOptions(const v1::AttendRequest& request, const AttentionModel& model,
                         attention::Call& call) {
  call.mask.causal = request.causal();
  if (request.has_scale()) call.scale = request.scale();
  switch (request.weights()) {
    case v1::ATTENTION_WEIGHTS_NONE:
      break;
    case v1::ATTENTION_WEIGHTS_PER_HEAD:
      call.need_weights = attention::WeightsWanted::kPerHead;
      break;
    case v1::ATTENTION_WEIGHTS_AVERAGED:
      call.need_weights = attention::WeightsWanted::kAveraged;
      break;
    default:
      return UnknownEnum("weights", request.weights());
  }
  const bool module = model.module != nullptr;
  switch (request.compute_dtype()) {
    case v1::DTYPE_UNSPECIFIED:
      call.dtype = module ? model.module->dtype() : DType::kF32;
      break;
    case v1::DTYPE_F32:
      call.dtype = DType::kF32;
      break;
    case v1::DTYPE_BF16:
      call.dtype = DType::kBf16;
      break;
    default:
      return InvalidAttend("compute_dtype is ", request.compute_dtype(), ", it must be F32 (",
                           v1::DTYPE_F32, ") or BF16 (", v1::DTYPE_BF16, ")");
  }
  if (!module || call.dtype == model.module->dtype()) return absl::OkStatus();
  return InvalidAttend("compute_dtype is ", DTypeName(call.dtype), ", but model '", model.name,
                       "' was loaded in ", DTypeName(model.module->dtype()));
}

int64_t RowBytes(const attention::InputRows& rows, const attention::Sequences& sequences,
                 DType dtype) {
  return sequences.tokens() * rows.heads * rows.dim * attention::ValueBytes(dtype);
}

int64_t OperandBytes(const AttendPlan& plan) {
  const attention::Call& call = plan.call;
  int64_t bytes = RowBytes(call.query, call.queries, call.dtype);
  if (plan.own_key) bytes += RowBytes(call.key, call.keys, call.dtype);
  if (plan.own_value) bytes += RowBytes(call.value, call.keys, call.dtype);
  return bytes;
}

}  // namespace

absl::Status CheckAttendLimit(absl::string_view what, int64_t value, int64_t limit,
                              absl::string_view flag) {
  if (value <= limit) return absl::OkStatus();
  return InvalidAttend("the request takes ", value, " ", what, ", the limit is ", limit, " (", flag,
                       ")");
}

absl::StatusOr<AttendPlan> PlanAttend(const v1::AttendRequest& request,
                                      const AttentionModel& model) {
  ATTENDANT_RETURN_IF_ERROR(CheckPriority(request.priority()));
  AttendPlan plan;
  plan.call.isa = model.isa;
  ATTENDANT_ASSIGN_OR_RETURN(plan.answer_format, FromProto("dtype", request.dtype()));
  ATTENDANT_RETURN_IF_ERROR(PlanOptions(request, model, plan.call));
  ATTENDANT_RETURN_IF_ERROR(PlanOperands(request, plan));
  ATTENDANT_RETURN_IF_ERROR(CheckAttendLimit("tokens (queries and keys)", plan.tokens(),
                                             model.limits.max_tokens, "--max_attention_tokens"));
  ATTENDANT_RETURN_IF_ERROR(PlanKind(request, model, plan));
  ATTENDANT_RETURN_IF_ERROR(PlanMasks(request, plan));
  ATTENDANT_RETURN_IF_ERROR(PlanPositions(request, plan));
  const AttendPositions& positions = plan.positions;
  // The lengths decide which positions the rows have.
  plan.own_key = request.has_key() || (positions.any() && request.key_lengths_size() > 0);
  plan.own_value =
      request.has_value() || (positions.any() && !(positions.added() && positions.to_value));
  plan.operand_bytes += OperandBytes(plan);
  return plan;
}

}  // namespace attendant
