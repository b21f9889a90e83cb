// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/packed_layers.h"

#include <algorithm>
#include <exception>
#include <iterator>
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

// The form in which the layer uses a matmul's results.
MatmulOutput WantedOutput(const EncoderConfig& config, bool qkv_is_bf16, size_t linear) {
  if (linear == kQkv) return qkv_is_bf16 ? MatmulOutput::kBf16 : MatmulOutput::kSums;
  if (linear == kFfnUp) return config.gated_ffn ? MatmulOutput::kGated : MatmulOutput::kActivated;
  const bool normed =
      linear == kAttentionOutput ? config.norms_attention_output() : config.norms_outputs();
  return normed ? MatmulOutput::kSums : MatmulOutput::kAdded;
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

// The layer that is the first of each set of layers of the same tensors.
std::vector<size_t> FindSets(const EncoderWeights& weights, std::vector<size_t>& set_of_layer) {
  std::vector<size_t> firsts;
  for (const EncoderLayerWeights& layer : weights.layers) {
    const auto set = std::find_if(firsts.begin(), firsts.end(), [&](size_t first) {
      return SameTensors(weights.layers[first], layer);
    });
    set_of_layer.push_back(static_cast<size_t>(set - firsts.begin()));
    if (set == firsts.end()) firsts.push_back(set_of_layer.size() - 1);
  }
  return firsts;
}

PackedLinear PackExpert(const Matmul& matmul, size_t linear, const ExpertWeights& expert,
                        const LayerSmoothing& smoothing, std::byte* storage) {
  if (linear == kFfnDown) {
    return PackTransposed(matmul, expert.down, storage, {.decompose_outliers = true});
  }
  const LinearWeights up{.weight = expert.up, .bias = {}};
  return PackLinear(matmul, {&up}, storage, {.smoothing_factors = smoothing.ffn_up});
}

bool IsOfFfn(size_t linear) { return linear == kFfnUp || linear == kFfnDown; }

// How many weights of linear layer `linear` a layer has.
int64_t Copies(const EncoderConfig& config, int64_t layer, size_t linear) {
  return IsOfFfn(linear) && config.has_experts(layer) ? config.experts : 1;
}

// Where the packed weights of all sets of layers lie, one behind the other: of each its linear
// layers, of these the experts'.
class Places {
 public:
  struct Place {
    size_t set, linear, expert;
    int64_t offset;
  };

  // Of the sets of layers whose first ones are `firsts`.
  Places(const EncoderConfig& config, const PackedLayers& packed,
         const std::vector<size_t>& firsts) {
    for (size_t set = 0; set < firsts.size(); ++set) {
      const auto layer = static_cast<int64_t>(firsts[set]);
      for (size_t linear = 0; linear < kLayerLinears; ++linear) {
        const int64_t each = RoundUp(packed.matmuls[linear]->packed_bytes(), Arena::kAlignment);
        for (int64_t i = 0; i < Copies(config, layer, linear); ++i) {
          places_.push_back(
              {set, linear, static_cast<size_t>(i), std::exchange(bytes_, bytes_ + each)});
        }
      }
    }
  }

  int64_t bytes() const { return bytes_; }
  int64_t count() const { return std::ssize(places_); }
  const Place& operator[](int64_t index) const { return places_[static_cast<size_t>(index)]; }

 private:
  std::vector<Place> places_;
  int64_t bytes_ = 0;
};

PackedLayer PackNorms(const EncoderConfig& config, const EncoderLayerWeights& weights,
                      bool attention_norm) {
  PackedLayer layer;
  if (attention_norm) layer.attention_norm = PackedNorm(weights.attention_norm);
  layer.ffn_norm = PackedNorm(weights.ffn_norm);
  if (config.norms_attention_output()) {
    layer.attention_output_norm = PackedNorm(weights.attention_output_norm);
  }
  if (config.norms_outputs()) layer.ffn_output_norm = PackedNorm(weights.ffn_output_norm);
  if (config.query_key_norm != QueryKeyNorm::kNone) {
    layer.query_norm = PackedNorm(weights.query_norm);
    layer.key_norm = PackedNorm(weights.key_norm);
  }
  return layer;
}

// All of the experts but their matmuls' weights.
PackedExperts PackRouter(const Matmul& matmul, const EncoderLayerWeights& weights, Arena& arena) {
  const LinearWeights router{.weight = weights.router, .bias = {}};
  PackedExperts experts{.router = PackLinear(matmul, {&router}, arena),
                        .bias = {},
                        .up = std::vector<PackedLinear>(weights.experts.size()),
                        .down = std::vector<PackedLinear>(weights.experts.size())};
  for (int64_t i = 0; i < matmul.options().k; ++i) {
    experts.bias.push_back(BiasAt(weights.experts_bias, i));
  }
  return experts;
}

absl::StatusOr<std::unique_ptr<Matmul>> CreateRouter(const EncoderConfig& config,
                                                     const IsaLevel& level) {
  return CreateMatmul(
      level,
      {.dtype = DType::kF32, .k = config.hidden, .n = config.experts, .max_rows = kMaxBlockRows});
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
  for (size_t i = 0; i < kLayerLinears; ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(packed.matmuls[i],
                               CreateLinear(config, options, packed.rows.qkv_is_bf16, i));
  }
  int64_t router_bytes = 0;
  if (config.expert_layers.any()) {
    ATTENDANT_ASSIGN_OR_RETURN(packed.router_matmul, CreateRouter(config, options.level));
    router_bytes = RoundUp(packed.router_matmul->packed_bytes(), Arena::kAlignment);
  }
  const std::vector<size_t> firsts = FindSets(weights, packed.set_of_layer);
  const Places places(config, packed, firsts);
  packed.memory = Arena(places.bytes() + std::ssize(firsts) * router_bytes);
  auto* const storage = packed.memory.Allocate<std::byte>(places.bytes());
  std::vector<LayerSmoothing> smoothing(firsts.size());
  if (options.dtype == DType::kInt8) {
    std::vector<LayerSmoothing> of_layers = PredictSmoothingFactors(config, weights);
    const bool shared = firsts.size() < of_layers.size();
    smoothing = shared ? SharedFactors(of_layers, packed.set_of_layer) : std::move(of_layers);
  }
  for (const size_t first : firsts) {
    const EncoderLayerWeights& layer = weights.layers[first];
    packed.sets.push_back(PackNorms(config, layer, first > 0 || config.first_attention_norm));
    if (!config.has_experts(static_cast<int64_t>(first))) continue;
    packed.sets.back().experts = PackRouter(*packed.router_matmul, layer, packed.memory);
  }
  if (config.final_norm) packed.final_norm = PackedNorm(weights.final_norm);
  if (config.positions == Positions::kRotary) {
    packed.rotary = RotaryTable(config.rotary, config.max_positions, config.head_dim());
    if (config.local_layers.any()) {
      packed.local_rotary =
          RotaryTable(config.local_rotary, config.max_positions, config.head_dim());
    }
  }
  RunLoadTasks(options.load_threads, places.count(), [&](int64_t index) {
    const auto& [set, linear, expert, offset] = places[index];
    const Matmul& matmul = *packed.matmuls[linear];
    const EncoderLayerWeights& from = weights.layers[firsts[set]];
    PackedLayer& to = packed.sets[set];
    if (IsOfFfn(linear) && config.has_experts(static_cast<int64_t>(firsts[set]))) {
      (linear == kFfnUp ? to.experts.up : to.experts.down)[expert] =
          PackExpert(matmul, linear, from.experts[expert], smoothing[set], storage + offset);
    } else {
      to.linears[linear] = Pack(matmul, linear, config, from, smoothing[set], storage + offset);
    }
  });
  return packed;
}

int64_t PackedExperts::bytes() const {
  int64_t bytes = router.bytes() + std::ssize(bias) * static_cast<int64_t>(sizeof(float));
  for (const PackedLinear& linear : up) bytes += linear.bytes();
  for (const PackedLinear& linear : down) bytes += linear.bytes();
  return bytes;
}

int64_t PackedLayers::bytes() const {
  int64_t bytes = final_norm.bytes();
  for (const PackedLayer& set : sets) {
    for (const PackedLinear& linear : set.linears) bytes += linear.bytes();
    bytes += set.experts.bytes();
    for (const PackedNorm* norm : {&set.attention_norm, &set.attention_output_norm, &set.query_norm,
                                   &set.key_norm, &set.ffn_norm, &set.ffn_output_norm}) {
      bytes += norm->bytes();
    }
  }
  return bytes + embedding_projection.bytes() + rotary.bytes() + local_rotary.bytes();
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
