// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_encoder.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_session.h"

namespace attendant::cpu {
namespace {

std::vector<float> Copy(TensorView<const float, 1> values) {
  return std::vector<float>(values.data(), values.data() + values.size());
}

// Query, key and value side by side: one product instead of three. [3 * hidden, hidden]
std::vector<float> ConcatenateQkv(const EncoderLayerWeights& layer) {
  std::vector<float> qkv;
  qkv.reserve(static_cast<size_t>(3 * layer.query.weight.size()));
  for (const LinearWeights* part : {&layer.query, &layer.key, &layer.value}) {
    qkv.insert(qkv.end(), part->weight.data(), part->weight.data() + part->weight.size());
  }
  return qkv;
}

std::vector<float> ConcatenateQkvBias(const EncoderLayerWeights& layer) {
  std::vector<float> bias;
  for (const LinearWeights* part : {&layer.query, &layer.key, &layer.value}) {
    bias.insert(bias.end(), part->bias.data(), part->bias.data() + part->bias.size());
  }
  return bias;
}

PackedLayer PackLayer(const EncoderConfig& config, const EncoderLayerWeights& layer,
                      const LayerMatmuls& matmuls) {
  const std::vector<float> qkv = ConcatenateQkv(layer);
  return PackedLayer{
      .qkv = matmuls.qkv.Pack({qkv.data(), {3 * config.hidden, config.hidden}}),
      .attention_output = matmuls.attention_output.Pack(layer.attention_output.weight),
      .ffn_up = matmuls.ffn_up.Pack(layer.ffn_up.weight),
      .ffn_down = matmuls.ffn_down.Pack(layer.ffn_down.weight),
      .qkv_bias = ConcatenateQkvBias(layer),
      .attention_output_bias = Copy(layer.attention_output.bias),
      .ffn_down_bias = Copy(layer.ffn_down.bias),
      .ffn_up_bias = Copy(layer.ffn_up.bias),
      .attention_gamma = Copy(layer.attention_norm.gamma),
      .attention_beta = Copy(layer.attention_norm.beta),
      .ffn_gamma = Copy(layer.ffn_norm.gamma),
      .ffn_beta = Copy(layer.ffn_norm.beta),
  };
}

absl::StatusOr<LayerMatmuls> CreateMatmuls(const dnnl::engine& engine,
                                           const EncoderConfig& config) {
  const auto create = [&](int64_t k, int64_t n, bool bias) {
    return Matmul::Create(engine, {.k = k, .n = n, .max_rows = kMaxBlockRows, .bias = bias});
  };
  absl::StatusOr<Matmul> qkv = create(config.hidden, 3 * config.hidden, true);
  if (!qkv.ok()) return qkv.status();
  // The biases of these three are added by the vector kernel that reads the product.
  absl::StatusOr<Matmul> attention_output = create(config.hidden, config.hidden, false);
  if (!attention_output.ok()) return attention_output.status();
  absl::StatusOr<Matmul> ffn_up = create(config.hidden, config.ffn, false);
  if (!ffn_up.ok()) return ffn_up.status();
  absl::StatusOr<Matmul> ffn_down = create(config.ffn, config.hidden, false);
  if (!ffn_down.ok()) return ffn_down.status();
  return LayerMatmuls{*std::move(qkv), *std::move(attention_output), *std::move(ffn_up),
                      *std::move(ffn_down)};
}

int64_t PackedBytes(const PackedLayer& layer) {
  size_t bytes = 0;
  for (const dnnl::memory* packed :
       {&layer.qkv, &layer.attention_output, &layer.ffn_up, &layer.ffn_down}) {
    bytes += packed->get_desc().get_size();
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

CpuEncoder::CpuEncoder(const EncoderConfig& config, EncoderWeights weights,
                       const VectorKernels& kernels, LayerMatmuls matmuls, dnnl::engine engine)
    : config_(config), kernels_(kernels), engine_(std::move(engine)), matmuls_(std::move(matmuls)) {
  info_ = {.backend = "cpu", .isa = matmuls_.qkv.implementation(), .dtype = DType::kF32};
  for (const EncoderLayerWeights& layer : weights.layers) {
    layers_.push_back(PackLayer(config_, layer, matmuls_));
    info_.weight_bytes += PackedBytes(layers_.back());
  }
  weights.layers.clear();
  embeddings_ = std::move(weights);
}

absl::StatusOr<std::unique_ptr<CpuEncoder>> CpuEncoder::Create(const EncoderConfig& config,
                                                               EncoderWeights weights,
                                                               const VectorKernels& kernels) {
  if (absl::Status status = ValidateWeights(config, weights); !status.ok()) return status;
  try {
    dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    absl::StatusOr<LayerMatmuls> matmuls = CreateMatmuls(engine, config);
    if (!matmuls.ok()) return matmuls.status();
    return std::unique_ptr<CpuEncoder>(new CpuEncoder(config, std::move(weights), kernels,
                                                      *std::move(matmuls), std::move(engine)));
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN cannot prepare the model: ", error.what()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the packed weights do not fit in memory");
  }
}

absl::StatusOr<std::unique_ptr<Session>> CpuEncoder::NewSession(const SessionLimits& limits,
                                                                int threads) const {
  try {
    return std::make_unique<CpuSession>(*this, limits, threads);
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN cannot make a session: ", error.what()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a session for batches of ", limits.max_batch_tokens, " tokens does not fit in memory"));
  }
}

}  // namespace attendant::cpu
