// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/attention/plan_kind.h"

#include <array>
#include <utility>

#include "kernels/attention/modules/module.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

using attention::Call;
using attention::Kind;

absl::Status PlanDotProduct(const v1::ScaledDotProductAttention& kind, Call& call) {
  const bool weights = call.need_weights != attention::WeightsWanted::kNone;
  switch (kind.algorithm()) {
    case v1::ATTENTION_ALGORITHM_UNSPECIFIED:
      call.kind = weights ? Kind::kDotProduct : Kind::kFlash;
      return absl::OkStatus();
    case v1::ATTENTION_ALGORITHM_FLASH:
      call.kind = Kind::kFlash;
      return absl::OkStatus();
    case v1::ATTENTION_ALGORITHM_SCORES:
      call.kind = Kind::kDotProduct;
      return absl::OkStatus();
    default:
      return UnknownEnum("scaled_dot_product.algorithm", kind.algorithm());
  }
}

absl::StatusOr<Kind> LuongKind(v1::LuongScore score) {
  switch (score) {
    case v1::LUONG_SCORE_UNSPECIFIED:
    case v1::LUONG_SCORE_DOT:
      return Kind::kLuongDot;
    case v1::LUONG_SCORE_GENERAL:
      return Kind::kLuongGeneral;
    case v1::LUONG_SCORE_CONCAT:
      return Kind::kLuongConcat;
    default:
      return UnknownEnum("luong.score", score);
  }
}

absl::Status PlanLinear(const v1::LinearAttention& kind, Call& call) {
  call.kind = Kind::kLinear;
  switch (kind.feature_map()) {
    case v1::FEATURE_MAP_UNSPECIFIED:
    case v1::FEATURE_MAP_ELU_PLUS_ONE:
      call.feature_map = attention::FeatureMap::kEluPlusOne;
      return absl::OkStatus();
    case v1::FEATURE_MAP_RELU:
      call.feature_map = attention::FeatureMap::kRelu;
      return absl::OkStatus();
    default:
      return UnknownEnum("linear.feature_map", kind.feature_map());
  }
}

absl::Status CheckNotNegative(absl::string_view field, int64_t value) {
  if (value >= 0) return absl::OkStatus();
  return InvalidAttend(field, " is ", value, ", it must be at least 0");
}

// Notes that a module makes `heads` heads of the operands, which must have none.
absl::Status SplitHeads(int64_t heads, AttendPlan& plan) {
  plan.module_heads = heads;
  if (!plan.with_heads) return absl::OkStatus();
  return InvalidAttend("query has heads, which this kind makes itself: send ",
                       plan.call.queries.packed() ? "[sum of query_lengths, query_dim]"
                                                  : "[batch, query_len, query_dim]");
}

// One of multi_head's tensors.
struct MultiHeadField {
  const char* name;
  bool present;
  const v1::Tensor& tensor;
  int64_t rank;
};

std::array<MultiHeadField, MultiHeadPlan::kTensors> MultiHeadFields(
    const v1::MultiHeadAttention& kind) {
  return {{
      {"multi_head.query_weight", true, kind.query_weight(), 2},
      {"multi_head.key_weight", true, kind.key_weight(), 2},
      {"multi_head.value_weight", true, kind.value_weight(), 2},
      {"multi_head.output_weight", true, kind.output_weight(), 2},
      {"multi_head.query_bias", kind.has_query_bias(), kind.query_bias(), 1},
      {"multi_head.key_bias", kind.has_key_bias(), kind.key_bias(), 1},
      {"multi_head.value_bias", kind.has_value_bias(), kind.value_bias(), 1},
      {"multi_head.output_bias", kind.has_output_bias(), kind.output_bias(), 1},
  }};
}

absl::StatusOr<WireTensor> ReadField(const MultiHeadField& field) {
  ATTENDANT_ASSIGN_OR_RETURN(WireTensor tensor,
                             ReadNumbers(field.name, field.tensor, kMaxTensorRank));
  if (tensor.rank() == field.rank) return tensor;
  return InvalidAttend(field.name, ": shape is ", ShapeText(tensor.shape), ", it must have ",
                       field.rank, field.rank == 1 ? " dim" : " dims");
}

absl::Status PlanMultiHead(const v1::MultiHeadAttention& kind, AttendPlan& plan) {
  attention::Call& call = plan.call;
  MultiHeadPlan& multi_head = plan.multi_head.emplace();
  multi_head.config = {.type = ModuleType::kMultiHead,
                       .heads = kind.heads(),
                       .hidden = call.query.dim,
                       .key_dim = call.key.dim,
                       .value_dim = call.value.dim};
  if (const absl::Status valid = Validate(multi_head.config); !valid.ok()) {
    return absl::Status(valid.code(), absl::StrCat("multi_head: ", valid.message()));
  }
  const auto fields = MultiHeadFields(kind);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i].present) continue;
    ATTENDANT_ASSIGN_OR_RETURN(multi_head.tensors[i], ReadField(fields[i]));
    const WireTensor& tensor = *multi_head.tensors[i];
    // A copy in f32, and what it is packed to.
    plan.operand_bytes += tensor.count * static_cast<int64_t>(sizeof(float));
    if (tensor.rank() == 2)
      plan.operand_bytes += attention::MaxPackedBytes(tensor.dim(0), tensor.dim(1));
  }
  call.kind = Kind::kMultiHead;
  return SplitHeads(multi_head.config.heads, plan);
}

absl::Status UseModule(const v1::AttendRequest& request, const AttentionModel& model,
                       AttendPlan& plan) {
  const attention::Module& module = *model.module;
  if (request.kind_case() != v1::AttendRequest::KIND_NOT_SET) {
    return InvalidAttend("kind is set, but model '", model.name,
                         "' is a module, which has its own");
  }
  if (request.has_scale()) {
    return InvalidAttend("scale is set, but model '", model.name,
                         "' is a module, which has its own");
  }
  if (module.kind() == Kind::kTransformer && request.has_key()) {
    return InvalidAttend("key is set, but an encoder's tokens attend to each other: send query");
  }
  plan.call.kind = module.kind();
  plan.call.module = &module;
  return SplitHeads(module.config().heads, plan);
}

absl::Status PlanParameter(const char* name, bool present, const v1::Tensor& tensor,
                           AttendPlan& plan) {
  if (!present) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(WireTensor read, ReadNumbers(name, tensor, kMaxTensorRank));
  if (read.rank() > 2) {
    return InvalidAttend(name, ": shape is ", ShapeText(read.shape),
                         ", it must have at most 2 dims");
  }
  plan.operand_bytes += read.count * static_cast<int64_t>(sizeof(float));
  const int64_t rows = read.rank() == 2 ? read.dim(0) : 1;
  plan.parameters.push_back({.name = name, .values = {nullptr, {rows, read.count / rows}}});
  plan.parameter_tensors.push_back(std::move(read));
  plan.call.parameters = plan.parameters;
  return absl::OkStatus();
}

absl::Status PlanAdditive(const v1::AdditiveAttention& kind, AttendPlan& plan) {
  plan.call.kind = Kind::kAdditive;
  ATTENDANT_RETURN_IF_ERROR(
      PlanParameter("query_weight", kind.has_query_weight(), kind.query_weight(), plan));
  ATTENDANT_RETURN_IF_ERROR(
      PlanParameter("key_weight", kind.has_key_weight(), kind.key_weight(), plan));
  ATTENDANT_RETURN_IF_ERROR(
      PlanParameter("score_weight", kind.has_score_weight(), kind.score_weight(), plan));
  return PlanParameter("bias", kind.has_bias(), kind.bias(), plan);
}

absl::Status PlanLuong(const v1::LuongAttention& kind, AttendPlan& plan) {
  ATTENDANT_ASSIGN_OR_RETURN(plan.call.kind, LuongKind(kind.score()));
  ATTENDANT_RETURN_IF_ERROR(PlanParameter("weight", kind.has_weight(), kind.weight(), plan));
  return PlanParameter("score_weight", kind.has_score_weight(), kind.score_weight(), plan);
}

absl::Status PlanLinformer(const v1::LinformerAttention& kind, AttendPlan& plan) {
  plan.call.kind = Kind::kLinformer;
  ATTENDANT_RETURN_IF_ERROR(
      PlanParameter("key_projection", kind.has_key_projection(), kind.key_projection(), plan));
  return PlanParameter("value_projection", kind.has_value_projection(), kind.value_projection(),
                       plan);
}

absl::Status PlanOperator(const v1::AttendRequest& request, AttendPlan& plan) {
  Call& call = plan.call;
  switch (request.kind_case()) {
    case v1::AttendRequest::KIND_NOT_SET:
    case v1::AttendRequest::kScaledDotProduct:
      return PlanDotProduct(request.scaled_dot_product(), call);
    case v1::AttendRequest::kMultiHead:
      return PlanMultiHead(request.multi_head(), plan);
    case v1::AttendRequest::kAdditive:
      return PlanAdditive(request.additive(), plan);
    case v1::AttendRequest::kLuong:
      return PlanLuong(request.luong(), plan);
    case v1::AttendRequest::kLocal:
      call.kind = Kind::kLocal;
      call.mask.window = request.local().window();
      return CheckNotNegative("local.window", call.mask.window);
    case v1::AttendRequest::kStrided:
      call.kind = Kind::kStrided;
      call.block = request.strided().block();
      return CheckNotNegative("strided.block", call.block);
    case v1::AttendRequest::kLinear:
      return PlanLinear(request.linear(), call);
    case v1::AttendRequest::kLinformer:
      return PlanLinformer(request.linformer(), plan);
  }
  return InvalidAttend("kind is unknown");
}

}  // namespace

absl::Status PlanKind(const v1::AttendRequest& request, const AttentionModel& model,
                      AttendPlan& plan) {
  if (model.module != nullptr) return UseModule(request, model, plan);
  return PlanOperator(request, plan);
}

}  // namespace attendant
