// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/packed_layers.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/encoder/smoothing_factors.h"
#include "kernels/cpu/simd/by_dtype.h"

namespace attendant::cpu {
namespace {

// One piece of a load: weights that become a PackedLinear.
struct PackTask {
  const Matmul* matmul;
  std::vector<const LinearWeights*> parts;
  QuantizationOptions quantization;
  std::byte* storage;
  PackedLinear* to;
};

// The tasks of all layers, largest first; makes the layers, but for what the tasks fill in.
std::vector<PackTask> PlanPacking(const std::vector<EncoderLayerWeights>& weights,
                                  std::vector<LayerSmoothing> smoothing,
                                  const LayerMatmuls& matmuls, Arena& arena,
                                  std::vector<PackedLayer>& layers) {
  std::vector<PackTask> tasks;
  const auto add = [&](const Matmul& matmul, std::vector<const LinearWeights*> parts,
                       QuantizationOptions quantization, PackedLinear& to) {
    auto* storage = arena.Allocate<std::byte>(matmul.packed_bytes());
    tasks.push_back({&matmul, std::move(parts), std::move(quantization), storage, &to});
  };
  layers.resize(weights.size());  // the tasks point into it
  for (size_t i = 0; i < weights.size(); ++i) {
    const EncoderLayerWeights& layer = weights[i];
    PackedLayer& to = layers[i];
    // Query, key and value side by side: one matmul instead of three.
    add(*matmuls.qkv, {&layer.query, &layer.key, &layer.value},
        {.smoothing_factors = std::move(smoothing[i].qkv)}, to.qkv);
    add(*matmuls.attention_output, {&layer.attention_output}, {}, to.attention_output);
    add(*matmuls.ffn_up, {&layer.ffn_up}, {.smoothing_factors = std::move(smoothing[i].ffn_up)},
        to.ffn_up);
    add(*matmuls.ffn_down, {&layer.ffn_down}, {.decompose_outliers = true}, to.ffn_down);
    to.attention_norm = PackedNorm(layer.attention_norm);
    to.ffn_norm = PackedNorm(layer.ffn_norm);
  }
  return tasks;
}

absl::StatusOr<LayerMatmuls> CreateMatmuls(const EncoderConfig& config, const PackOptions& options,
                                           bool qkv_is_bf16) {
  const DType dtype = options.dtype;
  const auto create = [&](int64_t k, int64_t n, bool is_qkv = false) {
    return CreateMatmul(options.kernels,
                        {.dtype = dtype,
                         .k = k,
                         .n = n,
                         .max_rows = kMaxBlockRows,
                         // Other biases are added by the vector kernel that reads the matmul.
                         .bias = is_qkv && dtype != DType::kInt8,
                         .bf16_output = is_qkv && dtype == DType::kBf16 && qkv_is_bf16});
  };
  LayerMatmuls matmuls;
  ATTENDANT_ASSIGN_OR_RETURN(matmuls.qkv, create(config.hidden, 3 * config.hidden, true));
  ATTENDANT_ASSIGN_OR_RETURN(matmuls.attention_output, create(config.hidden, config.hidden));
  ATTENDANT_ASSIGN_OR_RETURN(matmuls.ffn_up, create(config.hidden, config.ffn));
  ATTENDANT_ASSIGN_OR_RETURN(matmuls.ffn_down, create(config.ffn, config.hidden));
  return matmuls;
}

// The arena that the packed weights of all layers fill.
Arena MakeArena(const EncoderConfig& config, const LayerMatmuls& matmuls) {
  Arena measure;
  for (const Matmul* matmul : matmuls.all()) {
    for (int64_t i = 0; i < config.layers; ++i) measure.Allocate<std::byte>(matmul->packed_bytes());
  }
  return Arena(measure.used_bytes());
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
  const VectorKernels& kernels = options.kernels;
  const RowKernels& rows = ByDType(options.dtype, kernels.f32, kernels.bf16, kernels.int8);
  ATTENDANT_ASSIGN_OR_RETURN(LayerMatmuls matmuls,
                             CreateMatmuls(config, options, rows.qkv_is_bf16));
  PackedLayers packed{.config = config,
                      .dtype = options.dtype,
                      .kernels = kernels,
                      .rows = rows,
                      .matmuls = std::move(matmuls)};
  packed.memory = MakeArena(config, packed.matmuls);
  std::vector<LayerSmoothing> smoothing(weights.layers.size());
  if (options.dtype == DType::kInt8) smoothing = PredictSmoothingFactors(config, weights);
  const std::vector<PackTask> tasks = PlanPacking(weights.layers, std::move(smoothing),
                                                  packed.matmuls, packed.memory, packed.layers);
  RunLoadTasks(options.load_threads, static_cast<int64_t>(tasks.size()), [&](int64_t index) {
    const PackTask& task = tasks[static_cast<size_t>(index)];
    *task.to = PackLinear(*task.matmul, task.parts, task.storage, task.quantization);
  });
  if (config.final_norm) packed.final_norm = PackedNorm(weights.final_norm);
  return packed;
}

int64_t PackedLayers::bytes() const {
  int64_t bytes = 0, norms = final_norm.gamma.empty() ? 0 : 1;
  for (const PackedLayer& layer : layers) {
    for (const PackedLinear* linear :
         {&layer.qkv, &layer.attention_output, &layer.ffn_up, &layer.ffn_down}) {
      bytes += linear->bytes();
    }
    norms += 2;
  }
  return bytes + norms * 2 * config.hidden * static_cast<int64_t>(sizeof(float));
}

std::string PackedLayers::matmul_implementation() const {
  std::set<std::string> names;
  for (const Matmul* matmul : matmuls.all()) names.insert(matmul->implementation());
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
