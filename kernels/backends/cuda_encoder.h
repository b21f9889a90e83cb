// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/core/backend.h"
#include "kernels/cuda/cuda_interface.h"

namespace attendant {

class CudaWeights;

struct CudaDevice {
  int index = 0;  // as CUDA counts
  AttendantCudaDevice description{};
};

// A model on one or several devices, through the library's interface. Thread-safe.
class CudaEncoder final : public PreparedEncoder {
 public:
  // Uploads the weights to every device. UNIMPLEMENTED for an encoder that the library cannot be
  // told of, RESOURCE_EXHAUSTED when memory does not suffice here or on a device.
  static absl::StatusOr<std::unique_ptr<CudaEncoder>> Create(const AttendantCudaInterface& cuda,
                                                             const std::vector<CudaDevice>& devices,
                                                             const EncoderConfig& config,
                                                             const EncoderWeights& weights,
                                                             DType dtype);

  const EncoderConfig& config() const override { return config_; }
  const PreparedInfo& info() const override { return info_; }
  // A session on the device with the fewest sessions. `team` is ignored, since the device computes.
  absl::StatusOr<std::unique_ptr<Session>> NewSession(const SessionLimits& limits,
                                                      const ThreadTeam& team) const override;
  std::vector<DeviceUse> device_use() const override;

 private:
  class CudaSession;
  struct ModelDeleter {
    const AttendantCudaInterface* cuda;
    void operator()(AttendantCudaModel* model) const { cuda->destroy_model(model); }
  };
  struct Place {  // a device and its copy of the model
    CudaDevice device;
    std::unique_ptr<AttendantCudaModel, ModelDeleter> model;
    mutable std::vector<const CudaSession*> sessions;  // guarded by mutex_
    mutable AttendantCudaProfile ended{};              // of sessions that are no more, likewise
  };

  CudaEncoder(const AttendantCudaInterface& cuda, const EncoderConfig& config)
      : cuda_(cuda), config_(config) {}

  static absl::StatusOr<std::unique_ptr<CudaEncoder>> Upload(const AttendantCudaInterface& cuda,
                                                             const std::vector<CudaDevice>& devices,
                                                             const EncoderConfig& config,
                                                             const CudaWeights& weights,
                                                             DType dtype);
  void Leave(const Place& place, const CudaSession& session) const;

  const AttendantCudaInterface& cuda_;
  const EncoderConfig config_;
  PreparedInfo info_;
  std::vector<Place> places_;
  mutable absl::Mutex mutex_;  // of every place's sessions
};

}  // namespace attendant
