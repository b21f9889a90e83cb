// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/core/arena.h"
#include "kernels/core/base/position_tables.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/matmul/packed_linear.h"
#include "kernels/cpu/simd/isa_level.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// Rows of a block: large enough for the matmul's full speed, small enough that the block's [rows,
// ffn] intermediate stays in the second-level cache. With 64 and 96 rows MiniLM in int8 is 0.99 and
// 1.00 times as fast on Zen 5, BERT-base 0.99. With 256 rows MiniLM is 1.01 in f32 and bf16 and
// 1.02 in int8 (medians of 10 ratios at mixed lengths, 0.96 to 1.07), for twice the memory.
inline constexpr int64_t kMaxBlockRows = 128;

struct PackedNorm {
  PackedNorm() = default;
  explicit PackedNorm(const LayerNormWeights& weights);

  int64_t bytes() const {
    return static_cast<int64_t>((gamma.size() + beta.size()) * sizeof(float));
  }

  std::vector<float> gamma, beta;  // [hidden]
};

// The linear layers of an encoder's layer, in the order in which they run.
enum LayerLinear : uint8_t {
  kQkv,              // hidden -> qkv_width: query, key and value side by side
  kAttentionOutput,  // context_width -> hidden
  kFfnUp,            // hidden -> ffn, or gate and up: 2 * ffn, see PackedLinear
  kFfnDown,          // ffn -> hidden
  // embedding_width -> hidden: before all layers, where the encoder has it.
  kEmbeddingProjection,
};
inline constexpr size_t kLayerLinears = 4;             // of each layer
inline constexpr size_t kLinears = kLayerLinears + 1;  // with the last one

// A mixture of experts. Which of them a token goes to is chosen in f32 in every number format.
struct PackedExperts {
  PackedLinear router;      // [hidden, experts], without a bias
  std::vector<float> bias;  // [hidden]
  // [experts]: each one's matmul kFfnUp, and its kFfnDown. All have the same smoothing factors, so
  // that an expert that none of the tokens reached from which they are computed has some.
  std::vector<PackedLinear> up, down;

  int64_t bytes() const;
};

struct PackedLayer {
  std::array<PackedLinear, kLayerLinears> linears;  // where there are experts, without the last two
  PackedExperts experts;                            // or without any
  PackedNorm attention_norm, ffn_norm;              // the first may be empty: none
  PackedNorm attention_output_norm, ffn_output_norm;  // either may be empty
  PackedNorm query_norm, key_norm;                    // [head_dim], or of whole rows, or empty

  // The end of a branch, behind its last linear layer.
  const PackedNorm& output_norm(LayerLinear last) const {
    return last == kFfnDown ? ffn_output_norm : attention_output_norm;
  }
};

struct PackOptions {
  DType dtype;
  const IsaLevel& level;
  int load_threads = 1;
};

// An encoder's layers and final norm, packed for the CPU. Thread-safe when it does not change.
struct PackedLayers {
  // Copies what it needs of `weights`. INTERNAL or UNIMPLEMENTED as CreateMatmul. Throws
  // std::exception. REQUIRES: ValidateWeights(config, weights) is OK.
  static absl::StatusOr<PackedLayers> Create(const EncoderConfig& config,
                                             const EncoderWeights& weights,
                                             const PackOptions& options);

  int64_t bytes() const;
  std::string matmul_implementation() const;  // each name once
  LayerNormArgs norm_args(const PackedNorm& norm) const {
    return {.gamma = norm.gamma.empty() ? nullptr : norm.gamma.data(),
            .beta = norm.beta.data(),
            .hidden = config.hidden,
            .epsilon = config.layer_norm_epsilon,
            .rms = config.norm_kind == NormKind::kRms};
  }
  // The arguments of a norm over as many values as gamma has: those of one head, or of all heads.
  LayerNormArgs query_key_norm_args(const PackedNorm& norm) const {
    LayerNormArgs args = norm_args(norm);
    args.hidden = static_cast<int64_t>(norm.gamma.size());
    if (config.query_key_norm == QueryKeyNorm::kHead) args.rms = true;
    return args;
  }
  LayerNormArgs final_norm_args() const {
    LayerNormArgs args = norm_args(final_norm);
    args.epsilon = config.final_epsilon();
    return args;
  }
  const RotaryTable& rotary_of(int64_t layer) const {
    return config.is_local(layer) ? local_rotary : rotary;
  }
  const PackedLayer& layer(int64_t index) const {
    return sets[set_of_layer[static_cast<size_t>(index)]];
  }
  int64_t qkv_value_bytes() const { return rows.qkv_is_bf16 ? 2 : 4; }

  EncoderConfig config;
  DType dtype;
  const IsaLevel& level;
  const RowKernels& rows;                                   // of the format
  std::array<std::unique_ptr<Matmul>, kLinears> matmuls{};  // the same for all layers
  std::unique_ptr<Matmul> router_matmul{};                  // of f32, where there are experts
  Arena memory{};                                           // of the packed weights of layers
  std::vector<PackedLayer> sets{};     // of layers that differ: others share one
  std::vector<size_t> set_of_layer{};  // [layers]
  PackedNorm final_norm{};             // empty: none
  // Always f32, the weights and the matmul, whatever `dtype` is: no error before the first layer,
  // for little time (ELECTRA small: 0.4 % of an encoder's multiplications).
  PackedLinear embedding_projection{};
  Arena projection_memory{};
  RotaryTable rotary{}, local_rotary{};
};

// Calls task(index) for every index in [0, tasks) on `threads` threads. An exception that a task
// throws is thrown when all have ended.
void RunLoadTasks(int threads, int64_t tasks, absl::FunctionRef<void(int64_t)> task);

}  // namespace attendant::cpu
