// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "tests/support/cuda_emulation/grid.h"
#include "tests/support/cuda_emulation/machine.h"

namespace attendant::cuda_emulation {
namespace {

constexpr unsigned kMaxThreads = 1024;      // of a block
constexpr unsigned kMaxGridSide = 65535;    // in y and z
constexpr unsigned kMaxGrid = 0x7fffffffu;  // in x
constexpr int kSharedWithoutAsking = 48 << 10;

cudaError_t Check(const cudaLaunchConfig_t& config, int max_shared_bytes) {
  const dim3& grid = config.gridDim;
  const dim3& block = config.blockDim;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMaxThreads || block.z > 64) return cudaErrorInvalidConfiguration;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaErrorInvalidConfiguration;
  if (grid.x > kMaxGrid || grid.y > kMaxGridSide || grid.z > kMaxGridSide) {
    return cudaErrorInvalidConfiguration;
  }
  if (config.dynamicSmemBytes > static_cast<size_t>(max_shared_bytes)) return cudaErrorInvalidValue;
  return cudaSuccess;
}

}  // namespace

int MaxSharedBytes(int compute_capability) {
  if (compute_capability == 80) return 163 << 10;
  return compute_capability < 90 ? 99 << 10 : 227 << 10;
}

cudaError_t LaunchKernel(const cudaLaunchConfig_t& config, const void* function,
                         std::function<void()> kernel) {
  int max_shared_bytes = kSharedWithoutAsking;
  {
    Machine& machine = TheMachine();
    const std::lock_guard lock(machine.mutex);
    const auto asked = machine.shared_bytes.find({ThisThread().device, function});
    if (asked != machine.shared_bytes.end()) {
      max_shared_bytes = std::max(max_shared_bytes, asked->second);
    }
  }
  const cudaError_t error = Check(config, max_shared_bytes);
  if (error != cudaSuccess) return EndCall(error);
  const Index3 grid = {config.gridDim.x, config.gridDim.y, config.gridDim.z};
  const Index3 block = {config.blockDim.x, config.blockDim.y, config.blockDim.z};
  return EnqueueOnStream(
      config.stream, [grid, block, bytes = config.dynamicSmemBytes, kernel = std::move(kernel)] {
        RunGrid(grid, block, bytes, kernel);
      });
}

}  // namespace attendant::cuda_emulation
