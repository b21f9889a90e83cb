// SPDX-License-Identifier: Apache-2.0
#include "client/attention_wire.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/utf8.h"
#include "client/wire.h"
#include "google/protobuf/message.h"
#include "kernels/core/base/half.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using google::protobuf::Message;

template <typename Convert>
void AppendHalves(const std::vector<float>& values, Convert convert, std::string& data) {
  data.resize(values.size() * sizeof(uint16_t));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = convert(values[i]);
    std::memcpy(data.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
}

bool HasValues(const std::vector<int64_t>& shape, size_t count) {
  size_t rest = count;
  for (int64_t dim : shape) {
    if (dim <= 0) return dim == 0 && count == 0;
    if (rest % static_cast<size_t>(dim) != 0) return false;
    rest /= static_cast<size_t>(dim);
  }
  return rest == 1;
}

absl::Status CheckValues(absl::string_view name, const std::vector<int64_t>& shape, size_t count) {
  if (HasValues(shape, count)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has ", count, " values for shape [", absl::StrJoin(shape, ", "), "]"));
}

absl::Status Fill(absl::string_view name, const Tensor& tensor, DType dtype, v1::Tensor& proto) {
  static_assert(std::endian::native == std::endian::little);
  ATTENDANT_RETURN_IF_ERROR(CheckValues(name, tensor.shape, tensor.values.size()));
  proto.set_dtype(ToProto(dtype));
  proto.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  std::string& data = *proto.mutable_data();
  switch (dtype) {
    case DType::kF32:
      data.assign(reinterpret_cast<const char*>(tensor.values.data()),
                  tensor.values.size() * sizeof(float));
      break;
    case DType::kBf16:
      AppendHalves(tensor.values, ToBf16, data);
      break;
    case DType::kF16:
      AppendHalves(tensor.values, ToF16, data);
      break;
  }
  return absl::OkStatus();
}

absl::Status Fill(absl::string_view name, const BoolTensor& tensor, v1::Tensor& proto) {
  ATTENDANT_RETURN_IF_ERROR(CheckValues(name, tensor.shape, tensor.values.size()));
  proto.set_dtype(v1::DTYPE_BOOL);
  proto.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  proto.mutable_data()->assign(tensor.values.begin(), tensor.values.end());
  return absl::OkStatus();
}

absl::Status FillOperands(const AttendRequest& request, v1::AttendRequest& proto) {
  ATTENDANT_RETURN_IF_ERROR(Fill("query", request.query, request.dtype, *proto.mutable_query()));
  if (request.key.has_value()) {
    ATTENDANT_RETURN_IF_ERROR(Fill("key", *request.key, request.dtype, *proto.mutable_key()));
  }
  if (request.value.has_value()) {
    ATTENDANT_RETURN_IF_ERROR(Fill("value", *request.value, request.dtype, *proto.mutable_value()));
  }
  proto.mutable_query_lengths()->Add(request.query_lengths.begin(), request.query_lengths.end());
  proto.mutable_key_lengths()->Add(request.key_lengths.begin(), request.key_lengths.end());
  return absl::OkStatus();
}

v1::LuongAttention* FillLuong(v1::LuongScore score, v1::AttendRequest& proto) {
  proto.mutable_luong()->set_score(score);
  return proto.mutable_luong();
}

// The message of the kind, with all fields but its tensors.
absl::StatusOr<Message*> FillKind(const AttendRequest& request, v1::AttendRequest& proto) {
  const std::string& kind = request.kind;
  if (kind == "scaled_dot_product") return proto.mutable_scaled_dot_product();
  if (kind == "flash") {
    proto.mutable_scaled_dot_product()->set_algorithm(v1::ATTENTION_ALGORITHM_FLASH);
    return proto.mutable_scaled_dot_product();
  }
  if (kind == "multi_head") {
    proto.mutable_multi_head()->set_heads(request.heads);
    return proto.mutable_multi_head();
  }
  if (kind == "additive") return proto.mutable_additive();
  if (kind == "luong_dot") return FillLuong(v1::LUONG_SCORE_DOT, proto);
  if (kind == "luong_general") return FillLuong(v1::LUONG_SCORE_GENERAL, proto);
  if (kind == "luong_concat") return FillLuong(v1::LUONG_SCORE_CONCAT, proto);
  if (kind == "local") {
    proto.mutable_local()->set_window(request.window);
    return proto.mutable_local();
  }
  if (kind == "strided") {
    proto.mutable_strided()->set_block(request.block);
    return proto.mutable_strided();
  }
  if (kind == "linear") {
    const bool relu = request.feature_map == LinearFeatureMap::kRelu;
    proto.mutable_linear()->set_feature_map(relu ? v1::FEATURE_MAP_RELU
                                                 : v1::FEATURE_MAP_ELU_PLUS_ONE);
    return proto.mutable_linear();
  }
  if (kind == "linformer") return proto.mutable_linformer();
  return absl::InvalidArgumentError(absl::StrCat("there is no kind '", kind, "'"));
}

// The parameters go to the fields of their names; a module, without a message, has none.
absl::Status FillParameters(const AttendRequest& request, Message* kind) {
  for (const auto& [name, tensor] : request.parameters) {
    const auto* field = kind == nullptr ? nullptr : kind->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->message_type() != v1::Tensor::descriptor()) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no parameter of ",
                                                     kind == nullptr ? "a module" : request.kind));
    }
    Message* const message = kind->GetReflection()->MutableMessage(kind, field);
    ATTENDANT_RETURN_IF_ERROR(
        Fill(name, tensor, request.dtype, *static_cast<v1::Tensor*>(message)));
  }
  return absl::OkStatus();
}

absl::Status FillMasks(const AttendRequest& request, v1::AttendRequest& proto) {
  if (const auto* truth = std::get_if<BoolTensor>(&request.mask)) {
    ATTENDANT_RETURN_IF_ERROR(Fill("mask", *truth, *proto.mutable_mask()));
  } else if (const auto* added = std::get_if<Tensor>(&request.mask)) {
    ATTENDANT_RETURN_IF_ERROR(Fill("mask", *added, request.dtype, *proto.mutable_mask()));
  }
  if (!request.key_padding_mask.has_value()) return absl::OkStatus();
  return Fill("key_padding_mask", *request.key_padding_mask, *proto.mutable_key_padding_mask());
}

absl::Status FillPositions(const AttendRequest& request, v1::AttendRequest& proto) {
  using Kind = AttentionPositions::Kind;
  const AttentionPositions& positions = request.positions;
  switch (positions.kind) {
    case Kind::kNone:
      break;
    case Kind::kSinusoidal:
      proto.mutable_added()->set_to_value(positions.to_value);
      proto.mutable_added()->mutable_sinusoidal()->set_base(positions.base);
      break;
    case Kind::kLearned:
      proto.mutable_added()->set_to_value(positions.to_value);
      return Fill("learned", positions.learned, request.dtype,
                  *proto.mutable_added()->mutable_learned());
    case Kind::kRotary:
      proto.mutable_rotary()->set_base(positions.base);
      proto.mutable_rotary()->set_interleaved(positions.interleaved);
      break;
    case Kind::kAlibi:
      proto.mutable_alibi()->mutable_slopes()->Add(positions.slopes.begin(),
                                                   positions.slopes.end());
      break;
  }
  return absl::OkStatus();
}

v1::AttentionWeightsOutput ToProto(WeightsOutput output) {
  switch (output) {
    case WeightsOutput::kPerHead:
      return v1::ATTENTION_WEIGHTS_PER_HEAD;
    case WeightsOutput::kAveraged:
      return v1::ATTENTION_WEIGHTS_AVERAGED;
    case WeightsOutput::kNone:
      break;
  }
  return v1::ATTENTION_WEIGHTS_NONE;
}

absl::Status WrongShape(absl::string_view name, const std::vector<int64_t>& shape,
                        const std::vector<int64_t>& query) {
  return absl::InternalError(absl::StrCat("the answer's ", name, " has shape [",
                                          absl::StrJoin(shape, ", "), "] for a query of shape [",
                                          absl::StrJoin(query, ", "), "]"));
}

}  // namespace

absl::StatusOr<v1::AttendRequest> ToProto(const AttendRequest& request) {
  v1::AttendRequest proto;
  ATTENDANT_RETURN_IF_ERROR(RequireUtf8("model", request.model));
  proto.set_model(request.model);
  proto.set_priority(request.priority);
  ATTENDANT_RETURN_IF_ERROR(FillOperands(request, proto));
  Message* kind = nullptr;
  if (request.model.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(kind, FillKind(request, proto));
  }
  ATTENDANT_RETURN_IF_ERROR(FillParameters(request, kind));
  ATTENDANT_RETURN_IF_ERROR(FillMasks(request, proto));
  ATTENDANT_RETURN_IF_ERROR(FillPositions(request, proto));
  proto.set_causal(request.causal);
  if (request.scale.has_value()) proto.set_scale(*request.scale);
  proto.set_weights(ToProto(request.attention_weights));
  proto.set_dtype(ToProto(request.dtype));
  if (request.compute_dtype.has_value()) proto.set_compute_dtype(ToProto(*request.compute_dtype));
  return proto;
}

absl::StatusOr<AttendResult> FromProto(const v1::AttendResponse& response,
                                       const v1::AttendRequest& request) {
  AttendResult result;
  result.model = response.model();
  const std::vector<int64_t> query(request.query().shape().begin(), request.query().shape().end());
  ATTENDANT_ASSIGN_OR_RETURN(result.output, FromProto(response.output()));
  const std::vector<int64_t>& output = result.output.shape;
  if (output.empty() || output.size() != query.size() ||
      !std::equal(output.begin(), output.end() - 1, query.begin())) {
    return WrongShape("output", output, query);
  }
  if (response.has_weights()) {
    ATTENDANT_ASSIGN_OR_RETURN(result.attention_weights, FromProto(response.weights()));
    const std::vector<int64_t>& weights = result.attention_weights->shape;
    const bool is_dense = request.query_lengths().empty();
    if (is_dense && (query.size() < 3 || weights.size() < 3 || weights[0] != query[0] ||
                     weights[weights.size() - 2] != query[query.size() - 2])) {
      return WrongShape("weights", weights, query);
    }
  }
  result.timings = FromProto(response.timings());
  return result;
}

AttentionOffer FromProto(const v1::ListAttentionResponse& response) {
  AttentionOffer offer;
  for (const v1::AttentionKindInfo& info : response.kinds()) {
    AttentionKind& kind = offer.kinds.emplace_back();
    kind.name = info.name();
    kind.title = info.title();
    kind.formula = info.formula();
    kind.time = info.time();
    kind.memory = info.memory();
    kind.use = info.use();
    kind.has_attention_weights = info.weights();
    for (const v1::AttentionParameterInfo& parameter : info.parameters()) {
      kind.parameters.push_back(absl::StrCat(parameter.name(), " ", parameter.shape(),
                                             parameter.optional() ? " (optional)" : ""));
    }
  }
  for (const v1::AttentionModuleInfo& info : response.modules()) {
    offer.modules.push_back({.name = info.name(),
                             .state = FromProto(info.state()),
                             .type = info.type(),
                             .dtype = info.dtype(),
                             .activation = info.activation(),
                             .layers = info.layers(),
                             .heads = info.heads(),
                             .hidden = info.hidden(),
                             .key_dim = info.key_dim(),
                             .value_dim = info.value_dim(),
                             .ffn = info.ffn(),
                             .norm_first = info.norm_first()});
  }
  const v1::AttentionLimits& limits = response.limits();
  offer.max_attention_tokens = limits.max_attention_tokens();
  offer.max_attention_bytes = limits.max_attention_bytes();
  offer.max_attention_operations = limits.max_attention_operations();
  offer.max_response_bytes = limits.max_response_bytes();
  offer.max_request_bytes = limits.max_request_bytes();
  return offer;
}

}  // namespace attendant::client
