// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/engine/encoder_pass.h"
#include "kernels/cuda/engine/group_timer.h"
#include "kernels/cuda/engine/output_pipe.h"

namespace attendant::cuda {

// Takes from a pass what its batch asks for of the layers' insides, and times its groups.
class SessionObserver final : public PassObserver {
 public:
  // `layers` [batch] and `timer` may be null: nobody asks, nothing is timed.
  SessionObserver(const Model& model, const DeviceBuffers& buffers, const AttendantCudaBatch& batch,
                  const AttendantCudaLayerOutputs* layers, OutputPipe& pipe, GroupTimer* timer,
                  cudaStream_t stream)
      : model_(model),
        buffers_(buffers),
        batch_(batch),
        layers_(layers),
        pipe_(pipe),
        timer_(timer),
        stream_(stream) {}

  Status AfterGroup(int group) override;
  // softmax(q k^T / sqrt(head_dim)) of the heads that were asked for
  Status AfterQkv(int64_t layer) override;
  Status AfterLayer(int64_t layers_done) override;

 private:
  // Of sequence `index`, to [heads, len, len].
  Status TakeWeights(int64_t index, float* destination);
  Status TakeStates(int64_t index, float* destination);
  Status Send();
  int64_t len(int64_t index) const {
    return batch_.seq_starts[index + 1] - batch_.seq_starts[index];
  }

  const Model& model_;
  const DeviceBuffers& buffers_;
  const AttendantCudaBatch& batch_;
  const AttendantCudaLayerOutputs* layers_;
  OutputPipe& pipe_;
  GroupTimer* timer_;
  cudaStream_t stream_;
};

}  // namespace attendant::cuda
