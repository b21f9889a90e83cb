// SPDX-License-Identifier: Apache-2.0
#include "client/attention_wire.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/half.h"
#include "client/wire.h"

namespace attendant::client {
namespace {

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

// Fills messages, and keeps the first thing that is wrong.
class Writer {
 public:
  explicit Writer(const AttendRequest& request) : request_(request) {}

  absl::StatusOr<v1::AttendRequest> Write() {
    proto_.set_model(request_.model);
    proto_.set_priority(request_.priority);
    WriteOperands();
    if (request_.model.empty()) WriteKind();
    WriteMasks();
    WritePositions();
    WriteOptions();
    for (const auto& [name, tensor] : request_.parameters) {
      if (!used_.contains(name)) {
        Fail(absl::StrCat("'", name, "' is no parameter of ",
                          request_.model.empty() ? request_.kind : "a module"));
      }
    }
    if (!status_.ok()) return status_;
    return std::move(proto_);
  }

 private:
  void Fail(const std::string& message) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(message);
  }

  void Put(absl::string_view name, const Tensor& tensor, v1::Tensor& proto) {
    if (!HasValues(tensor.shape, tensor.values.size())) {
      return Fail(absl::StrCat(name, " has ", tensor.values.size(), " values for shape [",
                               absl::StrJoin(tensor.shape, ", "), "]"));
    }
    proto.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    std::string& data = *proto.mutable_data();
    switch (request_.dtype) {
      case DType::kF32:
        proto.set_dtype(v1::DTYPE_F32);
        data.assign(reinterpret_cast<const char*>(tensor.values.data()),
                    tensor.values.size() * sizeof(float));
        return;
      case DType::kBf16:
        proto.set_dtype(v1::DTYPE_BF16);
        return AppendHalves(tensor.values, ToBf16, data);
      case DType::kF16:
        proto.set_dtype(v1::DTYPE_F16);
        return AppendHalves(tensor.values, ToF16, data);
    }
  }

  void Put(absl::string_view name, const BoolTensor& tensor, v1::Tensor& proto) {
    if (!HasValues(tensor.shape, tensor.values.size())) {
      return Fail(absl::StrCat(name, " has ", tensor.values.size(), " values for shape [",
                               absl::StrJoin(tensor.shape, ", "), "]"));
    }
    proto.set_dtype(v1::DTYPE_BOOL);
    proto.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    proto.mutable_data()->assign(tensor.values.begin(), tensor.values.end());
  }

  // The parameter called `name`, if the request has it.
  template <typename Mutable>
  void PutParameter(const std::string& name, Mutable mutable_tensor) {
    const auto found = request_.parameters.find(name);
    if (found == request_.parameters.end()) return;
    used_[name] = true;
    Put(name, found->second, *mutable_tensor());
  }

  void WriteOperands() {
    Put("query", request_.query, *proto_.mutable_query());
    if (request_.key.has_value()) Put("key", *request_.key, *proto_.mutable_key());
    if (request_.value.has_value()) Put("value", *request_.value, *proto_.mutable_value());
    proto_.mutable_query_lengths()->Add(request_.query_lengths.begin(),
                                        request_.query_lengths.end());
    proto_.mutable_key_lengths()->Add(request_.key_lengths.begin(), request_.key_lengths.end());
  }

  void WriteKind() {
    const std::string& kind = request_.kind;
    if (kind == "scaled_dot_product") {
      proto_.mutable_scaled_dot_product();
    } else if (kind == "flash") {
      proto_.mutable_scaled_dot_product()->set_algorithm(v1::ATTENTION_ALGORITHM_FLASH);
    } else if (kind == "multi_head") {
      WriteMultiHead(*proto_.mutable_multi_head());
    } else if (kind == "additive") {
      v1::AdditiveAttention& additive = *proto_.mutable_additive();
      PutParameter("query_weight", [&] { return additive.mutable_query_weight(); });
      PutParameter("key_weight", [&] { return additive.mutable_key_weight(); });
      PutParameter("score_weight", [&] { return additive.mutable_score_weight(); });
      PutParameter("bias", [&] { return additive.mutable_bias(); });
    } else if (kind == "luong_dot" || kind == "luong_general" || kind == "luong_concat") {
      WriteLuong(kind, *proto_.mutable_luong());
    } else if (kind == "local") {
      proto_.mutable_local()->set_window(request_.window);
    } else if (kind == "strided") {
      proto_.mutable_strided()->set_block(request_.block);
    } else if (kind == "linear") {
      proto_.mutable_linear()->set_feature_map(request_.feature_map == LinearFeatureMap::kRelu
                                                   ? v1::FEATURE_MAP_RELU
                                                   : v1::FEATURE_MAP_ELU_PLUS_ONE);
    } else if (kind == "linformer") {
      v1::LinformerAttention& linformer = *proto_.mutable_linformer();
      PutParameter("key_projection", [&] { return linformer.mutable_key_projection(); });
      PutParameter("value_projection", [&] { return linformer.mutable_value_projection(); });
    } else {
      Fail(absl::StrCat("there is no kind '", kind, "'"));
    }
  }

  void WriteMultiHead(v1::MultiHeadAttention& multi_head) {
    multi_head.set_heads(request_.heads);
    PutParameter("query_weight", [&] { return multi_head.mutable_query_weight(); });
    PutParameter("key_weight", [&] { return multi_head.mutable_key_weight(); });
    PutParameter("value_weight", [&] { return multi_head.mutable_value_weight(); });
    PutParameter("output_weight", [&] { return multi_head.mutable_output_weight(); });
    PutParameter("query_bias", [&] { return multi_head.mutable_query_bias(); });
    PutParameter("key_bias", [&] { return multi_head.mutable_key_bias(); });
    PutParameter("value_bias", [&] { return multi_head.mutable_value_bias(); });
    PutParameter("output_bias", [&] { return multi_head.mutable_output_bias(); });
  }

  void WriteLuong(const std::string& kind, v1::LuongAttention& luong) {
    luong.set_score(kind == "luong_dot"       ? v1::LUONG_SCORE_DOT
                    : kind == "luong_general" ? v1::LUONG_SCORE_GENERAL
                                              : v1::LUONG_SCORE_CONCAT);
    PutParameter("weight", [&] { return luong.mutable_weight(); });
    PutParameter("score_weight", [&] { return luong.mutable_score_weight(); });
  }

  void WriteMasks() {
    if (const auto* truth = std::get_if<BoolTensor>(&request_.mask)) {
      Put("mask", *truth, *proto_.mutable_mask());
    } else if (const auto* added = std::get_if<Tensor>(&request_.mask)) {
      Put("mask", *added, *proto_.mutable_mask());
    }
    if (request_.key_padding_mask.has_value()) {
      Put("key_padding_mask", *request_.key_padding_mask, *proto_.mutable_key_padding_mask());
    }
  }

  void WritePositions() {
    using Kind = AttentionPositions::Kind;
    const AttentionPositions& positions = request_.positions;
    if (positions.kind == Kind::kSinusoidal || positions.kind == Kind::kLearned) {
      v1::AddedPositions& added = *proto_.mutable_added();
      added.set_to_value(positions.to_value);
      if (positions.kind == Kind::kLearned) {
        Put("learned", positions.learned, *added.mutable_learned());
      } else {
        added.mutable_sinusoidal()->set_base(positions.base);
      }
    } else if (positions.kind == Kind::kRotary) {
      proto_.mutable_rotary()->set_base(positions.base);
      proto_.mutable_rotary()->set_interleaved(positions.interleaved);
    } else if (positions.kind == Kind::kAlibi) {
      proto_.mutable_alibi()->mutable_slopes()->Add(positions.slopes.begin(),
                                                    positions.slopes.end());
    }
  }

  void WriteOptions() {
    proto_.set_causal(request_.causal);
    if (request_.scale.has_value()) proto_.set_scale(*request_.scale);
    proto_.set_weights(request_.weights == WeightsOutput::kPerHead ? v1::ATTENTION_WEIGHTS_PER_HEAD
                       : request_.weights == WeightsOutput::kAveraged
                           ? v1::ATTENTION_WEIGHTS_AVERAGED
                           : v1::ATTENTION_WEIGHTS_NONE);
    proto_.set_dtype(ToProto(request_.dtype));
    if (request_.compute_dtype.has_value()) {
      proto_.set_compute_dtype(ToProto(*request_.compute_dtype));
    }
  }

  static v1::DType ToProto(DType dtype) {
    return dtype == DType::kBf16  ? v1::DTYPE_BF16
           : dtype == DType::kF16 ? v1::DTYPE_F16
                                  : v1::DTYPE_F32;
  }

  const AttendRequest& request_;
  v1::AttendRequest proto_;
  std::map<std::string, bool> used_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<v1::AttendRequest> ToProto(const AttendRequest& request) {
  static_assert(std::endian::native == std::endian::little);
  return Writer(request).Write();
}

absl::StatusOr<AttendResult> FromProto(const v1::AttendResponse& response) {
  AttendResult result;
  result.model = response.model();
  absl::StatusOr<Tensor> output = FromProto(response.output());
  if (!output.ok()) return output.status();
  result.output = *std::move(output);
  if (response.has_weights()) {
    absl::StatusOr<Tensor> weights = FromProto(response.weights());
    if (!weights.ok()) return weights.status();
    result.weights = *std::move(weights);
  }
  result.timings = {.tokenize_us = response.timings().tokenize_us(),
                    .queue_us = response.timings().queue_us(),
                    .compute_us = response.timings().compute_us(),
                    .total_us = response.timings().total_us()};
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
    kind.weights = info.weights();
    for (const v1::AttentionParameterInfo& parameter : info.parameters()) {
      kind.parameters.push_back(absl::StrCat(parameter.name(), " ", parameter.shape(),
                                             parameter.optional() ? " (optional)" : ""));
    }
  }
  for (const v1::AttentionModuleInfo& info : response.modules()) {
    offer.modules.push_back({.name = info.name(),
                             .state = absl::AsciiStrToLower(absl::StripPrefix(
                                 v1::ModelState_Name(info.state()), "MODEL_STATE_")),
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
