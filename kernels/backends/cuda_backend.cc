// SPDX-License-Identifier: Apache-2.0
#include "kernels/backends/cuda_backend.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/backends/cuda_encoder.h"
#include "kernels/backends/cuda_library.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

uint32_t DTypeBit(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 1u << ATTENDANT_CUDA_F32;
    case DType::kBf16:
      return 1u << ATTENDANT_CUDA_BF16;
    case DType::kF16:
      return 1u << ATTENDANT_CUDA_F16;
    case DType::kFp8:
      return 1u << ATTENDANT_CUDA_FP8;
    case DType::kInt8:
      break;
  }
  return 0;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(const AttendantCudaInterface& cuda, std::vector<CudaDevice> devices)
      : cuda_(cuda), devices_(std::move(devices)) {}

  absl::string_view name() const override { return "cuda"; }

  // Enough tokens to fill a large GPU's multiprocessors several times in every matmul.
  BackendDefaults defaults() const override {
    return {.sessions = 2 * static_cast<int>(devices_.size()),
            .batch_tokens = 16384,
            .batch_sequences = 1024};
  }

  DType preferred_dtype() const override {
    return Supports(DType::kBf16).ok() ? DType::kBf16 : DType::kF32;
  }

  absl::Status Supports(DType dtype) const override {
    for (const CudaDevice& device : devices_) {
      if ((device.description.dtypes & DTypeBit(dtype)) != 0) continue;
      return absl::UnimplementedError(
          absl::StrCat("GPU ", device.index, " (", device.description.name, ", sm_",
                       device.description.compute_capability, ") has no ", DTypeName(dtype)));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& config,
                                                           EncoderWeights weights,
                                                           DType dtype) const override {
    ATTENDANT_RETURN_IF_ERROR(Supports(dtype));
    return CudaEncoder::Create(cuda_, devices_, config, weights, dtype);
  }

 private:
  const AttendantCudaInterface& cuda_;
  const std::vector<CudaDevice> devices_;
};

absl::StatusOr<std::vector<int>> ChooseDevices(const AttendantCudaInterface& cuda,
                                               const std::vector<int>& wanted) {
  int32_t count = 0;
  ATTENDANT_RETURN_IF_ERROR(FromCudaStatus(cuda.count_devices(&count)));
  if (count == 0) return absl::UnavailableError("there is no CUDA device");
  std::vector<int> devices = wanted;
  for (int i = 0; wanted.empty() && i < count; ++i) devices.push_back(i);
  for (const int device : devices) {
    if (device < count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("there is no GPU ", device, ": CUDA counts ", count, ", from 0"));
  }
  return devices;
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseCudaDevices(absl::string_view list) {
  std::vector<int> devices;
  if (list == "all") return devices;
  for (absl::string_view word : absl::StrSplit(list, ',')) {
    int device = 0;
    // SimpleAtoi takes blanks and signs along.
    const bool digits = !word.empty() && std::all_of(word.begin(), word.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || !absl::SimpleAtoi(word, &device)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", list, "' is neither all nor a list of device numbers as 0,1"));
    }
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
      return absl::InvalidArgumentError(absl::StrCat("'", list, "' names GPU ", device, " twice"));
    }
    devices.push_back(device);
  }
  return devices;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const CudaBackendOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(const AttendantCudaInterface* cuda, LoadCudaLibrary(options.library));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<int> indexes, ChooseDevices(*cuda, options.devices));
  std::vector<CudaDevice> devices;
  for (const int index : indexes) {
    CudaDevice device{.index = index};
    ATTENDANT_RETURN_IF_ERROR(FromCudaStatus(cuda->describe_device(index, &device.description)));
    devices.push_back(device);
  }
  return std::make_unique<CudaBackend>(*cuda, std::move(devices));
}

}  // namespace attendant
