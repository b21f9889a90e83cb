// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_encoder.h"

#include <new>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/check.h"
#include "kernels/cpu/cpu_session.h"

namespace attendant::cpu {
namespace {

std::vector<float> Copy(TensorView<const float, 1> values) {
  return std::vector<float>(values.data(), values.data() + values.size());
}

PackedLayer PackLayer(const EncoderLayerWeights& layer, const LayerMatmuls& matmuls, Arena& arena) {
  return PackedLayer{
      // Query, key and value side by side: one product instead of three.
      .qkv = PackLinear(matmuls.qkv, {&layer.query, &layer.key, &layer.value}, arena),
      .attention_output = PackLinear(matmuls.attention_output, {&layer.attention_output}, arena),
      .ffn_up = PackLinear(matmuls.ffn_up, {&layer.ffn_up}, arena),
      .ffn_down = PackLinear(matmuls.ffn_down, {&layer.ffn_down}, arena),
      .attention_gamma = Copy(layer.attention_norm.gamma),
      .attention_beta = Copy(layer.attention_norm.beta),
      .ffn_gamma = Copy(layer.ffn_norm.gamma),
      .ffn_beta = Copy(layer.ffn_norm.beta),
  };
}

const RowKernels& RowKernelsOf(const VectorKernels& kernels, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kernels.f32;
    case DType::kBf16:
      return kernels.bf16;
    case DType::kInt8:
      return kernels.int8;
  }
  ATTENDANT_CHECK(false);
}

absl::StatusOr<LayerMatmuls> CreateMatmuls(const dnnl::engine& engine, const EncoderConfig& config,
                                           DType dtype, bool qkv_is_bf16) {
  const auto create = [&](int64_t k, int64_t n) {
    return Matmul::Create(engine, {.dtype = dtype, .k = k, .n = n, .max_rows = kMaxBlockRows});
  };
  absl::StatusOr<Matmul> qkv =
      Matmul::Create(engine, {.dtype = dtype,
                              .k = config.hidden,
                              .n = 3 * config.hidden,
                              .max_rows = kMaxBlockRows,
                              .bias = dtype != DType::kInt8,
                              .bf16_output = dtype == DType::kBf16 && qkv_is_bf16});
  if (!qkv.ok()) return qkv.status();
  // Other biases are added by the vector kernel that reads the product.
  absl::StatusOr<Matmul> attention_output = create(config.hidden, config.hidden);
  if (!attention_output.ok()) return attention_output.status();
  absl::StatusOr<Matmul> ffn_up = create(config.hidden, config.ffn);
  if (!ffn_up.ok()) return ffn_up.status();
  absl::StatusOr<Matmul> ffn_down = create(config.ffn, config.hidden);
  if (!ffn_down.ok()) return ffn_down.status();
  return LayerMatmuls{*std::move(qkv), *std::move(attention_output), *std::move(ffn_up),
                      *std::move(ffn_down)};
}

size_t PackedBytes(const LayerMatmuls& matmuls, int64_t layers) {
  Arena measure(0);
  for (const Matmul* matmul :
       {&matmuls.qkv, &matmuls.attention_output, &matmuls.ffn_up, &matmuls.ffn_down}) {
    for (int64_t layer = 0; layer < layers; ++layer)
      measure.Allocate<std::byte>(matmul->packed_bytes());
  }
  return measure.used_bytes();
}

// What oneDNN chose for the products of a layer, each name once.
std::string ProductNames(const LayerMatmuls& matmuls) {
  std::set<std::string> names;
  for (const Matmul* matmul :
       {&matmuls.qkv, &matmuls.attention_output, &matmuls.ffn_up, &matmuls.ffn_down}) {
    names.insert(matmul->implementation());
  }
  return absl::StrJoin(names, ", ");
}

int64_t LayerBytes(const PackedLayer& layer) {
  return layer.qkv.bytes() + layer.attention_output.bytes() + layer.ffn_up.bytes() +
         layer.ffn_down.bytes();
}

}  // namespace

CpuEncoder::CpuEncoder(const EncoderConfig& config, EncoderWeights weights, DType dtype,
                       const VectorKernels& kernels, LayerMatmuls matmuls, dnnl::engine engine)
    : config_(config),
      kernels_(kernels),
      row_kernels_(RowKernelsOf(kernels, dtype)),
      engine_(std::move(engine)),
      matmuls_(std::move(matmuls)),
      packed_weights_(PackedBytes(matmuls_, config.layers)) {
  info_.backend = "cpu";
  info_.dtype = dtype;
  for (const EncoderLayerWeights& layer : weights.layers) {
    layers_.push_back(PackLayer(layer, matmuls_, packed_weights_));
    info_.weight_bytes += LayerBytes(layers_.back());
  }
  weights.layers.clear();
  embeddings_ = std::move(weights);
}

absl::StatusOr<std::unique_ptr<CpuEncoder>> CpuEncoder::Create(const EncoderConfig& config,
                                                               EncoderWeights weights, DType dtype,
                                                               const VectorKernels& kernels,
                                                               absl::string_view isa) {
  if (absl::Status status = ValidateWeights(config, weights); !status.ok()) return status;
  try {
    dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    absl::StatusOr<LayerMatmuls> matmuls =
        CreateMatmuls(engine, config, dtype, RowKernelsOf(kernels, dtype).qkv_is_bf16);
    if (!matmuls.ok()) return matmuls.status();
    std::unique_ptr<CpuEncoder> encoder(new CpuEncoder(config, std::move(weights), dtype, kernels,
                                                       *std::move(matmuls), std::move(engine)));
    encoder->info_.isa = std::string(isa);
    encoder->info_.products = ProductNames(encoder->matmuls_);
    return encoder;
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN cannot prepare the model: ", error.what()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the packed weights do not fit in memory");
  }
}

absl::StatusOr<std::unique_ptr<Session>> CpuEncoder::NewSession(const SessionLimits& limits,
                                                                const ThreadTeam& team) const {
  try {
    const ScopedPlacement near_the_team(team);
    return std::make_unique<CpuSession>(*this, limits, team);
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN cannot make a session: ", error.what()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a session for batches of ", limits.max_batch_tokens, " tokens does not fit in memory"));
  }
}

}  // namespace attendant::cpu
