// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Runs CUDA kernels on the CPU: the blocks of a grid one after the other, each thread of a block as
// a fiber that runs until it has to wait for others. What the compiler offers to device code is in
// cuda_runtime.h and cuda_emulated_ptx.h, on top of this.
//
// Shared memory begins with every bit set (NaN in every format). A thread that waits in vain - a
// barrier that some never reach, a warp's instruction that some lanes skip - is a fault, as is an
// asynchronous copy or matrix load outside of shared memory.
namespace attendant::cuda_emulation {

struct Index3 {
  unsigned x = 1, y = 1, z = 1;
};

struct KernelOptions {
  // The order in which warps run, and in which the lanes of a warp run: the last one first. A warp
  // runs as far as it can before the next one starts, so a missing synchronization shows.
  bool descending = false;
  // Asynchronous copies happen when they are waited for, or else when they are issued: a kernel
  // must be right with both.
  bool early_copies = false;
  // The device has the matmuls of groups of warps (group_ptx.cuh). With early_copies they run when
  // they are issued, or else when they are waited for.
  bool group_matmuls = false;
  // Faults wait for TakeFaults; otherwise the first one ends the program.
  bool collect_faults = false;
};
void SetKernelOptions(const KernelOptions& options);

// The faults of kernels since the last call, one message each, and forgets them. Used with
// collect_faults.
std::vector<std::string> TakeFaults();

// Sums over all kernels since the last call. A matrix load of eight rows is one access of shared
// memory if they lie in different banks; each further access that it takes is a conflict.
struct KernelStatistics {
  int64_t launches = 0;
  int64_t blocks = 0;
  int64_t matrix_loads = 0;
  int64_t matrix_load_conflicts = 0;
};
KernelStatistics TakeStatistics();

// Runs `kernel` in every thread of the grid, now.
void RunGrid(const Index3& grid, const Index3& block, size_t shared_bytes,
             const std::function<void()>& kernel);

// ---- For what device code calls; inside RunGrid only. ----

// The indices and sizes of the thread that runs, as CUDA defines them.
extern constinit thread_local Index3 threadIdx, blockIdx, blockDim, gridDim;
int Lane();

unsigned char* SharedMemory();
// The place of 16 bytes of shared memory; a fault if they lie outside or are not aligned.
unsigned char* SharedBytes16(uint32_t address);
// Counts the accesses that eight rows of 16 bytes take.
void CountMatrixLoad(const uint32_t (&addresses)[8]);

void WaitForBlock();

// All lanes of the warp come here with the same `name` and their operands; the last to come
// computes for all. operands[lane] is that lane's `operand`.
void WithWarp(const char* name, void* operand, void (*compute)(void* const (&operands)[32]));

// Asynchronous copies of the calling thread: 16 bytes, or zeros where `from` is null.
void IssueCopy(uint32_t to, const void* from);
void CommitCopies();
// Waits until at most `groups` of the committed groups are under way.
void WaitForCopies(int groups);

// True if the device of the running kernel has matmuls of groups of warps
// (KernelOptions::group_matmuls).
bool HasGroupMatmuls();
// Lets matmuls see the copies that the calling thread waited for.
void PublishCopies();
// A matmul that all lanes of the warp issued: a fault if some thread waited for copies and did not
// publish them. Called by the lane that computes for all; `matmul` reads shared memory.
void IssueMatmul(std::function<void()> matmul);
// Runs the matmuls that the warp of the calling thread issued. A kernel that ends before this call
// is a fault.
void FinishMatmuls();

[[noreturn]] void Fault(const std::string& what);

}  // namespace attendant::cuda_emulation
