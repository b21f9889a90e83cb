// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "kernels/attention/registry.h"
#include "server/rpc/attention/plan_parts.h"

namespace attendant {
namespace {

using attention::Call;
using attention::Kind;

absl::Status PlanDotProduct(const v1::ScaledDotProductAttention& kind, Call& call) {
  const bool weights = call.weights != attention::WeightsWanted::kNone;
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

absl::Status PlanLuong(const v1::LuongAttention& kind, Call& call) {
  switch (kind.score()) {
    case v1::LUONG_SCORE_UNSPECIFIED:
    case v1::LUONG_SCORE_DOT:
      call.kind = Kind::kLuongDot;
      return absl::OkStatus();
    case v1::LUONG_SCORE_GENERAL:
      call.kind = Kind::kLuongGeneral;
      return absl::OkStatus();
    case v1::LUONG_SCORE_CONCAT:
      call.kind = Kind::kLuongConcat;
      return absl::OkStatus();
    default:
      return UnknownEnum("luong.score", kind.score());
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

absl::Status UseModule(const v1::AttendRequest& request, const AttentionModel& model,
                       AttentionTask& task) {
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
  task.call.kind = module.kind();
  task.call.module = &module;
  return SplitHeads(module.config().heads, task);
}

absl::Status PlanParameters(const v1::AttendRequest& request, AttentionTask& task) {
  for (const ParameterField& field : ParameterFields(request)) {
    absl::StatusOr<WireTensor> read = ReadNumbers(field.name, *field.tensor, kMaxTensorRank);
    if (!read.ok()) return read.status();
    if (read->rank() > 2) {
      return InvalidAttend(field.name, ": shape is ", ShapeText(read->shape),
                           ", it must have at most 2 dims");
    }
    const int64_t rows = read->rank() == 2 ? read->dim(0) : 1;
    task.parameters.push_back(
        {.name = field.name, .values = {nullptr, {rows, read->count / rows}}});
    task.operand_bytes += read->count * static_cast<int64_t>(sizeof(float));
  }
  task.call.parameters = task.parameters;
  return absl::OkStatus();
}

absl::Status PlanOperator(const v1::AttendRequest& request, AttentionTask& task) {
  Call& call = task.call;
  switch (request.kind_case()) {
    case v1::AttendRequest::KIND_NOT_SET:
    case v1::AttendRequest::kScaledDotProduct:
      return PlanDotProduct(request.scaled_dot_product(), call);
    case v1::AttendRequest::kMultiHead:
      return PlanMultiHead(request, task);
    case v1::AttendRequest::kAdditive:
      call.kind = Kind::kAdditive;
      return absl::OkStatus();
    case v1::AttendRequest::kLuong:
      return PlanLuong(request.luong(), call);
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
      call.kind = Kind::kLinformer;
      return absl::OkStatus();
  }
  return InvalidAttend("kind is unknown");
}

}  // namespace

std::vector<ParameterField> ParameterFields(const v1::AttendRequest& request) {
  std::vector<ParameterField> fields;
  const auto add = [&fields](const char* name, bool present, const v1::Tensor& tensor) {
    if (present) fields.push_back({name, &tensor});
  };
  if (request.has_additive()) {
    const v1::AdditiveAttention& kind = request.additive();
    add("query_weight", kind.has_query_weight(), kind.query_weight());
    add("key_weight", kind.has_key_weight(), kind.key_weight());
    add("score_weight", kind.has_score_weight(), kind.score_weight());
    add("bias", kind.has_bias(), kind.bias());
  } else if (request.has_luong()) {
    const v1::LuongAttention& kind = request.luong();
    add("weight", kind.has_weight(), kind.weight());
    add("score_weight", kind.has_score_weight(), kind.score_weight());
  } else if (request.has_linformer()) {
    const v1::LinformerAttention& kind = request.linformer();
    add("key_projection", kind.has_key_projection(), kind.key_projection());
    add("value_projection", kind.has_value_projection(), kind.value_projection());
  }
  return fields;
}

absl::Status PlanKind(const v1::AttendRequest& request, const AttentionModel& model,
                      AttentionTask& task) {
  if (model.module != nullptr) return UseModule(request, model, task);
  if (absl::Status status = PlanOperator(request, task); !status.ok()) return status;
  return PlanParameters(request, task);
}

}  // namespace attendant
