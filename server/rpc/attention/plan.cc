// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/rpc/attention/plan.h"
#include "server/rpc/attention/plan_parts.h"

namespace attendant {
namespace {

constexpr size_t kMaxIdBytes = 256;
constexpr int kMaxPriority = 100;

absl::Status CheckHeader(const v1::AttendRequest& request) {
  if (request.id().size() > kMaxIdBytes) {
    return InvalidAttend("id has ", request.id().size(), " bytes, the limit is ", kMaxIdBytes);
  }
  if (request.priority() < -kMaxPriority || request.priority() > kMaxPriority) {
    return InvalidAttend("priority is ", request.priority(), ", it must be from ", -kMaxPriority,
                         " to ", kMaxPriority);
  }
  return AnswerFormat(request).status();
}

absl::Status PlanOptions(const v1::AttendRequest& request, const AttentionModel& model,
                         attention::Call& call) {
  call.mask.causal = request.causal();
  if (request.has_scale()) call.scale = request.scale();
  switch (request.weights()) {
    case v1::ATTENTION_WEIGHTS_NONE:
      break;
    case v1::ATTENTION_WEIGHTS_PER_HEAD:
      call.weights = attention::WeightsWanted::kPerHead;
      break;
    case v1::ATTENTION_WEIGHTS_AVERAGED:
      call.weights = attention::WeightsWanted::kAveraged;
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

absl::Status CheckLimit(absl::string_view what, int64_t value, int64_t limit,
                        absl::string_view flag) {
  if (value <= limit) return absl::OkStatus();
  return InvalidAttend("the request takes ", value, " ", what, ", the limit is ", limit, " (", flag,
                       ")");
}

// A sinusoidal table is made as long as the longest sequence.
int64_t TableBytes(const AttentionTask& task) {
  if (!task.positions.sinusoidal) return 0;
  const attention::Call& call = task.call;
  const int64_t width = std::max({call.query.dim, call.key.dim, call.value.dim});
  return std::max(call.queries.max_len(), call.keys.max_len()) * width *
         static_cast<int64_t>(sizeof(float));
}

absl::Status CheckCost(const AttentionModel& model, int64_t max_response_bytes,
                       AttentionTask& task) {
  absl::StatusOr<attention::Cost> cost = attention::Measure(task.call, model.threads);
  if (!cost.ok()) return cost.status();
  task.cost = *cost;
  ATTENDANT_RETURN_IF_ERROR(CheckLimit("bytes for its answer as f32",
                                       ResponseBytes(task.call, *cost), max_response_bytes,
                                       "--max_response_bytes"));
  ATTENDANT_RETURN_IF_ERROR(CheckLimit("bytes of scratch memory",
                                       cost->scratch_bytes + TableBytes(task),
                                       model.limits.max_bytes, "--max_attention_bytes"));
  ATTENDANT_RETURN_IF_ERROR(CheckLimit("multiply-adds", cost->operations,
                                       model.limits.max_operations, "--max_attention_operations"));
  return absl::OkStatus();
}

int64_t RowBytes(const attention::InputRows& rows, const attention::Sequences& sequences,
                 DType dtype) {
  return sequences.tokens() * rows.heads * rows.dim * attention::ValueBytes(dtype);
}

void CountOperands(const v1::AttendRequest& request, AttentionTask& task) {
  const attention::Call& call = task.call;
  task.operand_bytes += RowBytes(call.query, call.queries, call.dtype);
  if (OwnsKey(request)) task.operand_bytes += RowBytes(call.key, call.keys, call.dtype);
  if (OwnsValue(request, task.positions)) {
    task.operand_bytes += RowBytes(call.value, call.keys, call.dtype);
  }
}

}  // namespace

int64_t ResponseBytes(const attention::Call& call, const attention::Cost& cost) {
  const auto value_bytes = static_cast<int64_t>(sizeof(float));
  return cost.out_bytes / attention::ValueBytes(call.dtype) * value_bytes + cost.weights_bytes;
}

absl::StatusOr<NumberFormat> AnswerFormat(const v1::AttendRequest& request) {
  return FromWire("dtype", request.dtype());
}

absl::StatusOr<std::unique_ptr<AttentionTask>> PlanAttend(const v1::AttendRequest& request,
                                                          const AttentionModel& model) {
  auto task = std::make_unique<AttentionTask>();
  absl::Status status = CheckHeader(request);
  if (status.ok()) status = PlanOptions(request, model, task->call);
  if (status.ok()) status = PlanOperands(request, *task);
  if (status.ok()) {
    status = CheckLimit("tokens (queries and keys)", task->tokens(), model.limits.max_tokens,
                        "--max_attention_tokens");
  }
  if (status.ok()) status = PlanKind(request, model, *task);
  if (status.ok()) status = PlanMasks(request, *task);
  if (status.ok()) status = PlanPositions(request, *task);
  if (!status.ok()) return status;
  CountOperands(request, *task);
  return task;
}

absl::Status MeasureAttend(const v1::AttendRequest& request, const AttentionModel& model,
                           int64_t max_response_bytes, AttentionTask& task) {
  if (model.module == nullptr && request.has_multi_head()) {
    if (absl::Status s = PackMultiHead(request.multi_head(), task); !s.ok()) return s;
  }
  return CheckCost(model, max_response_bytes, task);
}

}  // namespace attendant
