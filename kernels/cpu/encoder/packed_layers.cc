// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/packed_layers.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/encoder/smoothing_factors.h"
#include "kernels/cpu/simd/by_dtype.h"

namespace attendant::cpu {
namespace {

// Of a matmul that leaves its sums to the vector kernels, without a bias.
Matmul::Options SumsOptions(const EncoderConfig& config, DType dtype, size_t linear) {
  const int64_t hidden = config.hidden, ffn = config.ffn;
  const int64_t inputs[kLayerLinears] = {hidden, config.context_width(), hidden, ffn};
  const int64_t outputs[kLayerLinears] = {config.qkv_width(), hidden, config.ffn_inputs(), hidden};
  return {.dtype = dtype, .k = inputs[linear], .n = outputs[linear], .max_rows = kMaxBlockRows};
}

// What the layer can use of a matmul.
MatmulOutput WantedOutput(const EncoderConfig& config, bool qkv_is_bf16, size_t linear) {
  if (linear == kQkv) return qkv_is_bf16 ? MatmulOutput::kBf16 : MatmulOutput::kSums;
  if (linear == kFfnUp) return config.gated_ffn ? MatmulOutput::kGated : MatmulOutput::kActivated;
  return config.norms_outputs() ? MatmulOutput::kSums : MatmulOutput::kAdded;
}

// A matmul that leaves the vector kernels as little as it can.
absl::StatusOr<std::unique_ptr<Matmul>> CreateLinear(const EncoderConfig& config,
                                                     const PackOptions& pack, bool qkv_is_bf16,
                                                     size_t linear) {
  const Matmul::Options sums = SumsOptions(config, pack.dtype, linear);
  Matmul::Options wanted = sums;
  wanted.bias = true;
  wanted.output = WantedOutput(config, qkv_is_bf16, linear);
  wanted.activation = config.activation;
  const bool qkv_of_floats = linear == kQkv && pack.dtype != DType::kInt8;
  const bool more_than_sums = wanted.output != MatmulOutput::kSums && HasOutput(pack.level, wanted);
  return CreateMatmul(pack.level, qkv_of_floats || more_than_sums ? wanted : sums);
}

PackedLinear Pack(const Matmul& matmul, size_t linear, const EncoderConfig& config,
                  const EncoderLayerWeights& layer, const LayerSmoothing& smoothing,
                  std::byte* storage) {
  switch (linear) {
    case kQkv:  // one matmul instead of three
      return PackLinear(matmul, {&layer.query, &layer.key, &layer.value}, storage,
                        {.smoothing_factors = smoothing.qkv});
    case kAttentionOutput:
      return PackLinear(matmul, {&layer.attention_output}, storage);
    case kFfnUp:
      if (config.gated_ffn) {
        return PackLinear(matmul, {&layer.ffn_gate, &layer.ffn_up}, storage,
                          {.smoothing_factors = smoothing.ffn_up});
      }
      return PackLinear(matmul, {&layer.ffn_up}, storage, {.smoothing_factors = smoothing.ffn_up});
    default:
      return PackLinear(matmul, {&layer.ffn_down}, storage, {.decompose_outliers = true});
  }
}

// In f32 whatever the layers' format is.
absl::Status PackProjection(const EncoderWeights& weights, PackedLayers& packed) {
  const EncoderConfig& config = packed.config;
  if (!config.projects_embeddings()) return absl::OkStatus();
  std::unique_ptr<Matmul>& matmul = packed.matmuls[kEmbeddingProjection];
  ATTENDANT_ASSIGN_OR_RETURN(matmul, CreateMatmul(packed.level, {.dtype = DType::kF32,
                                                                 .k = config.embedding_width,
                                                                 .n = config.hidden,
                                                                 .max_rows = kMaxBlockRows,
                                                                 .bias = true}));
  packed.projection_memory = Arena(matmul->packed_bytes());
  packed.embedding_projection =
      PackLinear(*matmul, {&weights.embedding_projection}, packed.projection_memory);
  return absl::OkStatus();
}

}  // namespace

PackedNorm::PackedNorm(const LayerNormWeights& weights)
    : gamma(weights.gamma.data(), weights.gamma.data() + weights.gamma.size()) {
  for (size_t i = 0; i < gamma.size(); ++i) {
    beta.push_back(BiasAt(weights.beta, static_cast<int64_t>(i)));
  }
}

absl::StatusOr<PackedLayers> PackedLayers::Create(const EncoderConfig& config,
                                                  const EncoderWeights& weights,
                                                  const PackOptions& options) {
  const VectorKernels& kernels = options.level.kernels;
  PackedLayers packed{.config = config,
                      .dtype = options.dtype,
                      .level = options.level,
                      .rows = ByDType(options.dtype, kernels.f32, kernels.bf16, kernels.int8)};
  ATTENDANT_RETURN_IF_ERROR(PackProjection(weights, packed));
  int64_t layer_bytes = 0;
  std::array<int64_t, kLayerLinears> offsets;  // in the memory of a layer
  for (size_t i = 0; i < kLayerLinears; ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(packed.matmuls[i],
                               CreateLinear(config, options, packed.rows.qkv_is_bf16, i));
    offsets[i] = std::exchange(
        layer_bytes, layer_bytes + RoundUp(packed.matmuls[i]->packed_bytes(), Arena::kAlignment));
  }
  packed.memory = Arena(config.layers * layer_bytes);
  auto* const storage = packed.memory.Allocate<std::byte>(config.layers * layer_bytes);
  std::vector<LayerSmoothing> smoothing(weights.layers.size());
  if (options.dtype == DType::kInt8) smoothing = PredictSmoothingFactors(config, weights);
  packed.layers.resize(weights.layers.size());
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    if (i > 0 || config.first_attention_norm) {
      packed.layers[i].attention_norm = PackedNorm(weights.layers[i].attention_norm);
    }
    packed.layers[i].ffn_norm = PackedNorm(weights.layers[i].ffn_norm);
    if (config.norms_outputs()) {
      packed.layers[i].attention_output_norm = PackedNorm(weights.layers[i].attention_output_norm);
      packed.layers[i].ffn_output_norm = PackedNorm(weights.layers[i].ffn_output_norm);
    }
    if (config.query_key_norm) {
      packed.layers[i].query_norm = PackedNorm(weights.layers[i].query_norm);
      packed.layers[i].key_norm = PackedNorm(weights.layers[i].key_norm);
    }
  }
  if (config.final_norm) packed.final_norm = PackedNorm(weights.final_norm);
  if (config.positions == Positions::kRotary) {
    packed.rotary = RotaryTable(config.rotary, config.max_positions, config.head_dim());
    if (config.local_layers.any()) {
      packed.local_rotary =
          RotaryTable(config.local_rotary, config.max_positions, config.head_dim());
    }
  }
  const int64_t tasks = config.layers * static_cast<int64_t>(kLayerLinears);
  RunLoadTasks(options.load_threads, tasks, [&](int64_t index) {
    const auto layer = static_cast<size_t>(index) / kLayerLinears;
    const size_t linear = static_cast<size_t>(index) % kLayerLinears;
    std::byte* const to = storage + static_cast<int64_t>(layer) * layer_bytes + offsets[linear];
    packed.layers[layer].linears[linear] =
        Pack(*packed.matmuls[linear], linear, config, weights.layers[layer], smoothing[layer], to);
  });
  return packed;
}

int64_t PackedLayers::bytes() const {
  int64_t bytes = 0, norms = final_norm.gamma.empty() ? 0 : 1;
  for (const PackedLayer& layer : layers) {
    for (const PackedLinear& linear : layer.linears) bytes += linear.bytes();
    norms += config.norms_outputs() ? 4 : 2;
  }
  return bytes + embedding_projection.bytes() + rotary.bytes() + local_rotary.bytes() +
         norms * 2 * config.hidden * static_cast<int64_t>(sizeof(float));
}

std::string PackedLayers::matmul_implementation() const {
  std::set<std::string> names;
  for (size_t i = 0; i < kLayerLinears; ++i) names.insert(matmuls[i]->implementation());
  return absl::StrJoin(names, ", ");
}

void RunLoadTasks(int threads, int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
  std::mutex mutex;
  std::exception_ptr error;
  ThreadPool pool(std::max(1, threads));
  pool.ParallelFor(tasks, [&](int64_t index, int) {
    try {
      task(index);
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

}  // namespace attendant::cpu
