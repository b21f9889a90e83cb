// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstdio>

#include "tests/support/cuda/device_run.h"

namespace attendant::cuda_test {

const AttendantCudaInterface* LoadInterface(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const auto function = library == nullptr ? nullptr
                                           : reinterpret_cast<AttendantCudaInterfaceFunction>(
                                                 dlsym(library, ATTENDANT_CUDA_INTERFACE_SYMBOL));
  if (function == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  const AttendantCudaInterface* interface = function(ATTENDANT_CUDA_INTERFACE_VERSION);
  if (interface == nullptr) std::fprintf(stderr, "%s is of another version\n", path);
  return interface;
}

AttendantCudaStatus DescribeFirstDevice(const AttendantCudaInterface& interface,
                                        AttendantCudaDevice& device) {
  int32_t count = 0;
  const AttendantCudaStatus status = interface.count_devices(&count);
  return status.code == ATTENDANT_CUDA_OK ? interface.describe_device(0, &device) : status;
}

}  // namespace attendant::cuda_test
