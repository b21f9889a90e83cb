// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/engine/encoder_pass.h"
#include "kernels/cuda/engine/group_timer.h"
#include "kernels/cuda/engine/output_pipe.h"

namespace attendant::cuda {

// Takes the inner states that a batch asks for from its pass, and times its groups.
class SessionObserver final : public PassObserver {
 public:
  // All must outlive the observer.
  struct Run {
    const Model& model;
    const DeviceBuffers& buffers;
    const AttendantCudaBatch& batch;
    const int32_t* positions;                 // the batch's, on the device
    const AttendantCudaLayerOutputs* layers;  // [batch]; null: no sequence asks for a layer
    OutputPipe& pipe;
    GroupTimer* timer;  // null: nothing is timed
    cudaStream_t stream;
  };
  explicit SessionObserver(const Run& run) : run_(run) {}

  Status AfterGroup(int group) override;
  // The attention weights of the heads that were asked for
  Status AfterQkv(int64_t layer) override;
  Status AfterLayer(int64_t layers_done) override;

 private:
  // Copies the attention weights of sequence `index` to [heads, queries, len].
  Status CopyWeights(int64_t index, int64_t layer, float* destination);
  Status CopyStates(int64_t index, int64_t layers_done, float* destination);
  Status Send();
  int64_t len(int64_t index) const {
    return run_.batch.seq_starts[index + 1] - run_.batch.seq_starts[index];
  }
  int64_t queries(int64_t index) const {
    const int64_t wanted = run_.layers[index].attention_queries;
    return wanted > 0 && wanted < len(index) ? wanted : len(index);
  }

  const Run run_;
};

}  // namespace attendant::cuda
