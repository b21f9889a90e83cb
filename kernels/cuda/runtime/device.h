// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/cuda/runtime/number_types.h"
#include "kernels/cuda/runtime/status.h"

// The machine's GPUs, as functions of cuda_interface.h.
namespace attendant::cuda {

// UNAVAILABLE, saying why, without a driver or a device.
Status CountDevices(int32_t& count);
// INVALID_ARGUMENT for a device that is not there.
Status DescribeDevice(int32_t device, AttendantCudaDevice& description);
Status ReadDeviceMemory(int32_t device, int64_t& free_bytes, int64_t& total_bytes);

// Makes the device current for the calling thread.
Status UseDevice(int device);

// OK when the device computes fast in `format`, else UNIMPLEMENTED.
Status CheckDType(int device, DType dtype);

}  // namespace attendant::cuda
