// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/cuda/engine/session_buffers.h"
#include "kernels/cuda/engine/tuner.h"

namespace attendant::cuda {

// The sizes that a pass is launched with: for a recorded graph the largest batch that it may get,
// otherwise the sizes of the batch. The kernels read the real sizes from the block's BatchCounts.
struct PassSize {
  int64_t rows = 0;  // of the matmuls: a bucket
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t attention_tasks = 0;
};

// Looks on while a pass is put into its stream, and may add to it.
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  // Everything since the last call was work of `group`, one of ATTENDANT_CUDA_GROUP_*.
  virtual Status AfterGroup(int group) = 0;
  // The layer's q, k and v are in `wide`, queries and keys as attention reads them.
  virtual Status AfterQkv(int64_t layer) = 0;
  // `states` are what layer `layers_done` - 1 made; with 0, the embeddings.
  virtual Status AfterLayer(int64_t layers_done) = 0;
};

// The encoder as a sequence of launches: embedding, layers, pooling. The block is in the device's
// memory before; states and pooled vectors are in the buffers after.
class EncoderPass {
 public:
  // Keeps the pointers of `buffers`; model and algorithms must outlive it.
  EncoderPass(const Model& model, const DeviceBuffers& buffers, const Algorithms& algorithms,
              int64_t max_sequences);

  // Puts a pass over the largest batch of bucket `size.rows` into `stream`. `observer` may be null.
  Status Issue(const PassSize& size, cudaStream_t stream, PassObserver* observer) const;

 private:
  struct Run;  // of one Issue

  Status Embed(const Run& run) const;
  Status ProjectEmbeddings(const Run& run, const NormWeights& next) const;
  Status Layer(const Run& run, int64_t layer) const;
  Status NormWhole(const Run& run, const DeviceLayer& layer) const;
  Status PlaceHeads(const Run& run, const DeviceLayer& layer) const;
  Status Attend(const Run& run, int64_t layer) const;
  Status FeedForward(const Run& run, const DeviceLayer& layer) const;
  Status Linear(const Run& run, const DeviceLinear& linear, MatmulKind kind) const;
  Status Linear(const Run& run, const DeviceLayer& layer, MatmulKind kind) const {
    return Linear(run, layer.matmul(kind), kind);
  }
  Status Norm(const Run& run, const NormWeights& branch_norm, const NormWeights& norm) const;
  Status AddBranch(const Run& run, const std::byte* update, const NormWeights& norm,
                   const NormWeights& next) const;
  Status Pool(const Run& run) const;

  const Model& model_;
  DeviceBuffers buffers_;
  const Algorithms& algorithms_;
  int64_t max_sequences_;
  DType states_;
  MatmulContext matmul_context_;
};

}  // namespace attendant::cuda
