// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "kernels/cpu/encoder/embedding_table.h"
#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/matmul/packed_linear.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// Rows of a block: large enough for the matmul's full speed, small enough that the block's [rows,
// ffn] intermediate stays in the second-level cache.
inline constexpr int64_t kMaxBlockRows = 128;

struct PackedLayer {
  PackedLinear qkv;                                                         // hidden -> 3 * hidden
  PackedLinear attention_output;                                            // hidden -> hidden
  PackedLinear ffn_up;                                                      // hidden -> ffn
  PackedLinear ffn_down;                                                    // ffn -> hidden
  std::vector<float> attention_gamma, attention_beta, ffn_gamma, ffn_beta;  // [hidden]
};

// The four matmuls of a layer, the same for all layers.
struct LayerMatmuls {
  std::unique_ptr<Matmul> qkv, attention_output, ffn_up, ffn_down;
};

// A model prepared for the CPU. Immutable, thread-safe.
class CpuEncoder final : public PreparedEncoder {
 public:
  struct Options {
    DType dtype;
    const VectorKernels& kernels;
    absl::string_view isa;  // what the level that `kernels` stand for is called
    int load_threads;
  };

  // Copies what it needs of `weights` and lets go of them.
  static absl::StatusOr<std::unique_ptr<CpuEncoder>> Create(const EncoderConfig& config,
                                                            EncoderWeights weights,
                                                            const Options& options);

  const EncoderConfig& config() const override { return config_; }
  const PreparedInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Session>> NewSession(const SessionLimits& limits,
                                                      const ThreadTeam& team) const override;

  const VectorKernels& kernels() const { return kernels_; }
  const RowKernels& row_kernels() const { return row_kernels_; }
  const LayerMatmuls& matmuls() const { return matmuls_; }
  const std::vector<PackedLayer>& layers() const { return layers_; }
  // The position and segment tables and the embeddings' LayerNorm; nothing else is there.
  const EncoderWeights& embeddings() const { return embeddings_; }
  const EmbeddingTable& token_embedding() const { return token_embedding_; }  // [vocab, hidden]

 private:
  CpuEncoder(const EncoderConfig& config, const EncoderWeights& weights, const Options& options,
             LayerMatmuls matmuls);

  EncoderConfig config_;
  PreparedInfo info_;
  const VectorKernels& kernels_;
  const RowKernels& row_kernels_;  // of the format
  LayerMatmuls matmuls_;
  Arena memory_;  // of the packed weights and the embedding tables
  std::vector<PackedLayer> layers_;
  EmbeddingTable token_embedding_;
  EncoderWeights embeddings_;
};

}  // namespace attendant::cpu
