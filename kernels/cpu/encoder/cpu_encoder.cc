// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/cpu_encoder.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/encoder/cpu_session.h"
#include "kernels/cpu/encoder/smoothing_factors.h"
#include "kernels/cpu/simd/by_dtype.h"

namespace attendant::cpu {
namespace {

// Rows of the token table that one task copies.
constexpr int64_t kTableRows = 1024;

std::vector<float> Copy(TensorView<const float, 1> values) {
  return std::vector<float>(values.data(), values.data() + values.size());
}

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
    to.attention_gamma = Copy(layer.attention_norm.gamma);
    to.attention_beta = Copy(layer.attention_norm.beta);
    to.ffn_gamma = Copy(layer.ffn_norm.gamma);
    to.ffn_beta = Copy(layer.ffn_norm.beta);
  }
  return tasks;
}

// What a task throws is thrown when all have ended.
void RunTasks(int threads, int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
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

template <int rank>
void MoveInto(Arena& arena, TensorView<const float, rank>& tensor) {
  auto* copy = arena.Allocate<float>(tensor.size());
  std::copy(tensor.data(), tensor.data() + tensor.size(), copy);
  tensor = {copy, tensor.dims()};
}

// What of the embeddings stays f32: the small tables.
EncoderWeights CopyEmbeddings(const EncoderWeights& weights, Arena& arena) {
  EncoderWeights copy;
  copy.position_embedding = weights.position_embedding;
  copy.segment_embedding = weights.segment_embedding;
  copy.embedding_norm = weights.embedding_norm;
  MoveInto(arena, copy.position_embedding);
  MoveInto(arena, copy.segment_embedding);
  MoveInto(arena, copy.embedding_norm.gamma);
  MoveInto(arena, copy.embedding_norm.beta);
  return copy;
}

const RowKernels& RowKernelsOf(const VectorKernels& kernels, DType dtype) {
  return ByDType(dtype, kernels.f32, kernels.bf16, kernels.int8);
}

absl::StatusOr<LayerMatmuls> CreateMatmuls(const EncoderConfig& config,
                                           const CpuEncoder::Options& options) {
  const DType dtype = options.dtype;
  const auto create = [&](int64_t k, int64_t n) {
    return CreateMatmul(options.kernels,
                        {.dtype = dtype, .k = k, .n = n, .max_rows = kMaxBlockRows});
  };
  ATTENDANT_ASSIGN_OR_RETURN(
      std::unique_ptr<Matmul> qkv,
      CreateMatmul(options.kernels,
                   {.dtype = dtype,
                    .k = config.hidden,
                    .n = 3 * config.hidden,
                    .max_rows = kMaxBlockRows,
                    .bias = dtype != DType::kInt8,
                    .bf16_output = dtype == DType::kBf16 &&
                                   RowKernelsOf(options.kernels, dtype).qkv_is_bf16}));
  // Other biases are added by the vector kernel that reads the matmul.
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> attention_output,
                             create(config.hidden, config.hidden));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> ffn_up, create(config.hidden, config.ffn));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> ffn_down, create(config.ffn, config.hidden));
  return LayerMatmuls{std::move(qkv), std::move(attention_output), std::move(ffn_up),
                      std::move(ffn_down)};
}

// What Create allocates, in any order.
size_t MemoryBytes(const EncoderConfig& config, DType dtype, const LayerMatmuls& matmuls) {
  Arena measure(0);
  for (const Matmul* matmul : {matmuls.qkv.get(), matmuls.attention_output.get(),
                               matmuls.ffn_up.get(), matmuls.ffn_down.get()}) {
    for (int64_t layer = 0; layer < config.layers; ++layer)
      measure.Allocate<std::byte>(matmul->packed_bytes());
  }
  EmbeddingTable(config.vocab, config.hidden, dtype, measure);
  for (int64_t rows : {config.max_positions, config.segment_types, int64_t{1}, int64_t{1}}) {
    measure.Allocate<float>(rows * config.hidden);
  }
  return measure.used_bytes();
}

// What computes the matmuls of a layer, each name once.
std::string MatmulImplementations(const LayerMatmuls& matmuls) {
  std::set<std::string> names;
  for (const Matmul* matmul : {matmuls.qkv.get(), matmuls.attention_output.get(),
                               matmuls.ffn_up.get(), matmuls.ffn_down.get()}) {
    names.insert(matmul->implementation());
  }
  return absl::StrJoin(names, ", ");
}

int64_t FloatBytes(size_t count) { return static_cast<int64_t>(count * sizeof(float)); }

int64_t LayerBytes(const PackedLayer& layer) {
  return layer.qkv.bytes() + layer.attention_output.bytes() + layer.ffn_up.bytes() +
         layer.ffn_down.bytes() + 4 * FloatBytes(layer.ffn_gamma.size());
}

}  // namespace

CpuEncoder::CpuEncoder(const EncoderConfig& config, const EncoderWeights& weights,
                       const Options& options, LayerMatmuls matmuls)
    : config_(config),
      kernels_(options.kernels),
      row_kernels_(RowKernelsOf(options.kernels, options.dtype)),
      matmuls_(std::move(matmuls)),
      memory_(MemoryBytes(config, options.dtype, matmuls_)),
      token_embedding_(config.vocab, config.hidden, options.dtype, memory_),
      embeddings_(CopyEmbeddings(weights, memory_)) {
  info_.backend = "cpu";
  info_.isa = std::string(options.isa);
  info_.matmul_implementation = MatmulImplementations(matmuls_);
  info_.dtype = options.dtype;

  std::vector<LayerSmoothing> smoothing(weights.layers.size());
  if (options.dtype == DType::kInt8) smoothing = PredictSmoothingFactors(config, weights);
  const std::vector<PackTask> tasks =
      PlanPacking(weights.layers, std::move(smoothing), matmuls_, memory_, layers_);
  const auto pieces = static_cast<int64_t>(tasks.size());
  const int64_t table_pieces = CeilDivide(config.vocab, kTableRows);
  RunTasks(options.load_threads, pieces + table_pieces, [&](int64_t index) {
    if (index < pieces) {
      const PackTask& task = tasks[static_cast<size_t>(index)];
      *task.to = PackLinear(*task.matmul, task.parts, task.storage, task.quantization);
      return;
    }
    const int64_t begin = (index - pieces) * kTableRows;
    token_embedding_.FillRows(weights.token_embedding, begin,
                              std::min(config.vocab, begin + kTableRows));
  });
  info_.weight_bytes =
      token_embedding_.bytes() + (config.max_positions + config.segment_types + 2) *
                                     FloatBytes(static_cast<size_t>(config.hidden));
  for (const PackedLayer& layer : layers_) info_.weight_bytes += LayerBytes(layer);
}

absl::StatusOr<std::unique_ptr<CpuEncoder>> CpuEncoder::Create(const EncoderConfig& config,
                                                               EncoderWeights weights,
                                                               const Options& options) {
  ATTENDANT_RETURN_IF_ERROR(ValidateWeights(config, weights));
  try {
    ATTENDANT_ASSIGN_OR_RETURN(LayerMatmuls matmuls, CreateMatmuls(config, options));
    return std::unique_ptr<CpuEncoder>(
        new CpuEncoder(config, weights, options, std::move(matmuls)));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the packed weights do not fit in memory");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cannot prepare the model: ", error.what()));
  }
}

absl::StatusOr<std::unique_ptr<Session>> CpuEncoder::NewSession(const SessionLimits& limits,
                                                                const ThreadTeam& team) const {
  try {
    const ScopedPlacement near_the_team(team);
    return std::make_unique<CpuSession>(*this, limits, team);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a session for batches of ", limits.max_batch_tokens, " tokens does not fit in memory"));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cannot make a session: ", error.what()));
  }
}

}  // namespace attendant::cpu
