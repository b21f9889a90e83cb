// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/attention/to_proto.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/attention/registry.h"
#include "kernels/core/base/half.h"
#include "server/protocols/wire/messages.h"

namespace attendant {
namespace {

void AppendBf16(const AttendOperation::Buffer& values, NumberFormat format, std::string& bytes) {
  constexpr size_t kPiece = 4096;
  const auto* bits = reinterpret_cast<const uint16_t*>(values.data());
  const size_t count = values.size() / sizeof(uint16_t);
  std::vector<float> piece(std::min(kPiece, count));
  for (size_t first = 0; first < count; first += kPiece) {
    const size_t size = std::min(kPiece, count - first);
    for (size_t i = 0; i < size; ++i) piece[i] = FromBf16(bits[first + i]);
    AppendValues({piece.data(), size}, format, bytes);
  }
}

}  // namespace

void ToProto(AttendOperation& operation, NumberFormat format, v1::AttendResponse& response) {
  std::string& out = StartTensor(operation.out_shape(), format, *response.mutable_output());
  {
    const AttendOperation::Buffer values = operation.TakeOut();  // freed before the weights
    if (operation.dtype() == DType::kBf16) {
      AppendBf16(values, format, out);
    } else {
      AppendValues({reinterpret_cast<const float*>(values.data()), values.size() / sizeof(float)},
                   format, out);
    }
  }
  if (!operation.has_weights()) return;
  std::string& weights =
      StartTensor(operation.weights_shape(), format, *response.mutable_weights());
  AppendValues(operation.TakeWeights(), format, weights);
}

void KindsToProto(v1::ListAttentionResponse& response) {
  for (const attention::Operator* op : attention::Operators()) {
    if (op->kind == attention::Kind::kTransformer) continue;  // modules only: no request names it
    v1::AttentionKindInfo& info = *response.add_kinds();
    info.set_name(op->name);
    info.set_title(op->title);
    info.set_formula(op->formula);
    info.set_time(op->time);
    info.set_memory(op->memory);
    info.set_use(op->use);
    info.set_weights(op->gives_weights);
    for (const attention::ParameterInfo& parameter : op->parameters) {
      v1::AttentionParameterInfo& added = *info.add_parameters();
      added.set_name(parameter.name);
      added.set_shape(parameter.shape);
      added.set_optional(parameter.optional);
    }
  }
}

void ToProto(const ModelStatus& status, v1::AttentionModuleInfo& info) {
  info.set_name(status.name);
  info.set_state(StateToProto(status));
  if (!status.module.has_value()) return;
  const ModuleConfig& config = status.module->config;
  const bool encoder = config.type == ModuleType::kTransformerEncoder;
  info.set_type(encoder ? "encoder" : "multi_head");
  info.set_dtype(std::string(DTypeName(status.module->dtype)));
  info.set_layers(encoder ? config.layers : 1);
  info.set_heads(config.heads);
  info.set_hidden(config.hidden);
  info.set_key_dim(config.key_dim);
  info.set_value_dim(config.value_dim);
  if (!encoder) return;
  info.set_ffn(config.ffn);
  info.set_norm_first(config.norm_first);
  info.set_final_norm(config.final_norm);
  info.set_activation(config.activation == Activation::kRelu ? "relu" : "gelu");
}

}  // namespace attendant
