// SPDX-License-Identifier: Apache-2.0
// libattendant_cuda.so as nvcc built it, on this machine, which may have no GPU and no driver: it
// loads, shows one symbol, and says what is missing.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cuda/cuda_interface.h"

namespace attendant {
namespace {

class CudaLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      const char* error = dlerror();
      if (std::strstr(error, "libcublasLt") != nullptr) GTEST_SKIP() << error;
      FAIL() << error;
    }
    const auto function = reinterpret_cast<AttendantCudaInterfaceFunction>(
        dlsym(library_, ATTENDANT_CUDA_INTERFACE_SYMBOL));
    ASSERT_NE(function, nullptr);
    EXPECT_EQ(function(ATTENDANT_CUDA_INTERFACE_VERSION + 1), nullptr);
    interface_ = function(ATTENDANT_CUDA_INTERFACE_VERSION);
    ASSERT_NE(interface_, nullptr);
  }

  void* library_ = nullptr;  // never closed: drivers do not survive it
  const AttendantCudaInterface* interface_ = nullptr;
};

TEST_F(CudaLibraryTest, SaysWhatItIs) {
  EXPECT_EQ(interface_->version, ATTENDANT_CUDA_INTERFACE_VERSION);
  EXPECT_EQ(std::strncmp(interface_->build, "CUDA ", 5), 0) << interface_->build;
  EXPECT_NE(std::strstr(interface_->build, "sm_80"), nullptr) << interface_->build;
  EXPECT_NE(std::strstr(interface_->build, "sm_90"), nullptr) << interface_->build;
}

TEST_F(CudaLibraryTest, CountsDevicesOrSaysWhyNot) {
  int32_t count = -1;
  const AttendantCudaStatus status = interface_->count_devices(&count);
  std::printf("%s: %d devices, code %d: %s\n", interface_->build, count, status.code,
              status.message);
  if (status.code == ATTENDANT_CUDA_OK) {
    EXPECT_GT(count, 0);
    return;
  }
  EXPECT_EQ(status.code, ATTENDANT_CUDA_UNAVAILABLE);
  EXPECT_EQ(count, 0);
  EXPECT_NE(std::strstr(status.message, "CUDA"), nullptr) << status.message;
  if (dlopen("libcuda.so.1", RTLD_LAZY) == nullptr) {
    EXPECT_EQ(std::strncmp(status.message, "no CUDA driver: ", 16), 0) << status.message;
  }
  AttendantCudaDevice description;
  EXPECT_NE(interface_->describe_device(0, &description).code, ATTENDANT_CUDA_OK);
  int64_t free_bytes = 0, total_bytes = 0;
  EXPECT_NE(interface_->device_memory(0, &free_bytes, &total_bytes).code, ATTENDANT_CUDA_OK);
}

TEST_F(CudaLibraryTest, ShowsNothingElse) {
  for (const char* name : {"cudaGetLastError", "cudaMalloc", "cudaGraphLaunch"}) {
    void* symbol = dlsym(library_, name);
    Dl_info where{};
    if (symbol != nullptr && dladdr(symbol, &where) != 0) {
      EXPECT_EQ(std::strstr(where.dli_fname, "libattendant_cuda.so"), nullptr) << name;
    }
  }
}

}  // namespace
}  // namespace attendant
