// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cuda/engine/batch_layout.h"
#include "kernels/cuda/engine/encoder_pass.h"
#include "kernels/cuda/engine/group_timer.h"
#include "kernels/cuda/engine/output_pipe.h"
#include "kernels/cuda/engine/profile_sampler.h"
#include "kernels/cuda/model/model.h"

namespace attendant::cuda {

// Batches of up to so many tokens are replayed from graphs, which takes the host out of the way
// where it would be slower than the device.
inline constexpr int64_t kMaxGraphTokens = 1024;
// The most that a session may be made for: sequence starts and their multiples stay far from
// 2^31.
inline constexpr int64_t kMaxSessionTokens = int64_t{1} << 20;

// Runs a model, one batch at a time. Takes all its memory, algorithms and graphs when it is made.
class Session {
 public:
  // Makes the model's device current, as all functions do; the model must outlive the session.
  static Status Create(Model& model, const AttendantCudaLimits& limits,
                       std::unique_ptr<Session>& session);
  ~Session();

  // Returns when all results are where they belong. After an error other than DEVICE_LOST the
  // session works on.
  Status Run(const AttendantCudaBatch& batch, const AttendantCudaOutputSpec& spec,
             AttendantCudaOutputs& outputs);

  int64_t bytes() const { return bytes_; }
  // Any thread may ask.
  AttendantCudaProfile profile() const;

 private:
  struct RecordedPass {
    PassSize size;
    ExecutableGraph graph;
  };

  Session(Model& model, const AttendantCudaLimits& limits);
  // The steps of creation.
  Status Allocate();
  Status WarmUp();
  Status RecordGraphs();
  Status Record(RecordedPass& pass);

  // The steps of a run.
  Status Execute(const AttendantCudaBatch& batch, const AttendantCudaOutputSpec& spec,
                 AttendantCudaOutputs& outputs);
  Status Compute(const AttendantCudaBatch& batch, const AttendantCudaOutputSpec& spec,
                 bool sampled);
  BatchLayout LayoutOf(int64_t rows) const;
  Status CopyBlock(int64_t bytes);
  Status CopyOutputs(const AttendantCudaBatch& batch, const AttendantCudaOutputSpec& spec,
                     AttendantCudaOutputs& outputs);
  Status Account(bool sampled);
  // Leaves nothing under way after an error; returns this error, or a worse one.
  Status Recover(const Status& error);
  const RecordedPass* FindGraph(const PassSize& size) const;

  Model& model_;
  AttendantCudaLimits limits_;
  SessionSize size_;
  int64_t bytes_ = 0;
  Stream compute_;
  DeviceMemory device_memory_;
  PinnedMemory pinned_memory_;
  DeviceBuffers device_{};
  PinnedBuffers pinned_{};
  Algorithms algorithms_;
  std::unique_ptr<EncoderPass> pass_;
  std::vector<RecordedPass> graphs_;  // by rows
  Event begin_, end_;                 // of a run
  GroupTimer timer_;
  OutputPipe pipe_;
  ProfileSampler sampler_;
  bool lost_ = false;
  mutable std::mutex profile_mutex_;
  AttendantCudaProfile profile_{};  // guarded by profile_mutex_
};

}  // namespace attendant::cuda
