// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "kernels/attention/registry.h"
#include "kernels/core/half.h"
#include "server/rpc/attention/plan.h"
#include "server/rpc/encoder/messages.h"
#include "server/rpc/wire/messages.h"

namespace attendant {
namespace {

void AppendBf16(const Buffer& values, NumberFormat format, std::string& bytes) {
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

std::vector<int64_t> OutputShape(const AttentionTask& task) {
  const attention::Sequences& queries = task.call.queries;
  const int64_t dim = task.cost.out_dim;
  if (queries.packed()) {
    if (task.with_heads) return {queries.tokens(), task.cost.out_heads, dim};
    return {queries.tokens(), dim};
  }
  if (task.with_heads) return {queries.batch(), task.cost.out_heads, queries.seq(), dim};
  return {queries.batch(), queries.seq(), dim};
}

// Columns are keys, but Linformer's projected ones.
std::vector<int64_t> WeightsShape(const AttentionTask& task) {
  const attention::Sequences& queries = task.call.queries;
  const auto count = static_cast<int64_t>(task.weights.size());
  if (queries.packed()) return {count};
  const int64_t heads = task.cost.weights_heads;
  const int64_t columns = count / (queries.batch() * heads * queries.seq());
  const bool per_head = task.call.weights == attention::WeightsWanted::kPerHead;
  if (per_head && (task.with_heads || task.module_heads > 0)) {
    return {queries.batch(), heads, queries.seq(), columns};
  }
  return {queries.batch(), queries.seq(), columns};
}

}  // namespace

void EncodeAttention(NumberFormat format, AttentionTask& task, v1::AttendResponse& response) {
  std::string& out = StartTensor(OutputShape(task), format, *response.mutable_output());
  if (task.call.dtype == DType::kBf16) {
    AppendBf16(task.out, format, out);
  } else {
    AppendValues({reinterpret_cast<const float*>(task.out.data()), task.out.size() / sizeof(float)},
                 format, out);
  }
  Buffer().swap(task.out);
  if (task.weights.empty()) return;
  std::string& weights = StartTensor(WeightsShape(task), format, *response.mutable_weights());
  AppendValues(task.weights, format, weights);
  std::vector<float>().swap(task.weights);
}

void EncodeKinds(v1::ListAttentionResponse& response) {
  for (const attention::Operator* op : attention::Operators()) {
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

void EncodeModule(const ModelStatus& status, v1::AttentionModuleInfo& info) {
  info.set_name(status.name);
  info.set_state(EncodeModelState(status.state));
  const attention::Module& module = *status.attention()->module;
  const ModuleConfig& config = module.config();
  const bool encoder = config.type == ModuleType::kTransformerEncoder;
  info.set_type(encoder ? "encoder" : "multi_head");
  info.set_dtype(std::string(DTypeName(module.dtype())));
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
