// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_emulation/grid.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "tests/support/fiber/fiber.h"

namespace attendant::cuda_emulation {

constinit thread_local Index3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr int kLanes = 32;

// What kernels left for the tests, from whatever thread they ran in.
struct Record {
  std::mutex mutex;
  KernelOptions options;
  std::vector<std::string> faults;
  KernelStatistics statistics;
};
Record& TheRecord() {
  static Record record;
  return record;
}

// Ends the thread that it is thrown in.
struct FaultyThread {};

struct Copy {
  uint32_t to;
  const void* from;
};

enum class Wait { kNone, kBlock, kWarp };

struct Thread {
  Index3 index;
  int lane = 0;
  int warp = 0;
  Wait wait = Wait::kNone;
  bool ended = false;
  std::vector<std::vector<Copy>> copies;  // by group; the last one is open
  bool unpublished = false;               // copies that were waited for, to matmuls
};

struct Warp {
  const char* instruction = nullptr;  // that lanes have come to
  int lanes = 0;                      // that have
  void* operands[kLanes];
  std::vector<std::function<void()>> matmuls;  // issued, not yet run
};

// The block that a thread of the system is running.
class Block {
 public:
  void Run(const Index3& grid, const Index3& block, const Index3& index, size_t shared_bytes,
           const std::function<void()>& kernel, const KernelOptions& options);

  Thread& thread() { return threads_[current_]; }
  unsigned char* shared() { return shared_.get(); }
  size_t shared_bytes() const { return shared_bytes_; }
  const KernelOptions& options() const { return options_; }
  KernelStatistics& statistics() { return statistics_; }

  void WaitForBlock();
  void WithWarp(const char* name, void* operand, void (*compute)(void* const (&operands)[kLanes]));
  [[noreturn]] void Fault(const std::string& what);
  bool faulty() const { return !fault_.empty(); }
  void IssueMatmul(std::function<void()> matmul);
  void FinishMatmuls();

 private:
  static void Enter(void* self);
  bool RunWarp(size_t warp);  // as far as it goes; whether it went anywhere
  void GiveWay(Wait wait);
  std::string DescribeStandstill() const;

  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };
  std::deque<Fiber> fibers_;  // kept from block to block
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::unique_ptr<unsigned char, Free> shared_;
  size_t shared_bytes_ = 0;
  const std::function<void()>* kernel_ = nullptr;
  KernelOptions options_;
  size_t current_ = 0;
  size_t at_barrier_ = 0;
  std::string fault_;
  KernelStatistics statistics_;
};

Block& TheBlock() {
  static thread_local Block block;
  return block;
}

void Block::Enter(void* self) {
  auto* block = static_cast<Block*>(self);
  try {
    (*block->kernel_)();
  } catch (const FaultyThread&) {
    // The fault is noted.
  }
  block->thread().ended = true;
}

void Block::GiveWay(Wait wait) {
  thread().wait = wait;
  fibers_[current_].Yield();
}

void Block::Fault(const std::string& what) {
  if (fault_.empty()) {
    fault_ = what + " (thread " + std::to_string(threadIdx.x) + " of block " +
             std::to_string(blockIdx.x) + ")";
  }
  throw FaultyThread();
}

void Block::WaitForBlock() {
  if (++at_barrier_ < threads_.size()) {
    GiveWay(Wait::kBlock);
    return;
  }
  at_barrier_ = 0;
  for (Thread& other : threads_) {
    if (other.wait == Wait::kBlock) other.wait = Wait::kNone;
  }
}

void Block::WithWarp(const char* name, void* operand,
                     void (*compute)(void* const (&operands)[kLanes])) {
  Thread& self = thread();
  Warp& warp = warps_[static_cast<size_t>(self.warp)];
  if (warp.lanes == 0) warp.instruction = name;
  if (std::strcmp(warp.instruction, name) != 0) {
    Fault(std::string("lanes of a warp are at ") + warp.instruction + " and at " + name);
  }
  warp.operands[self.lane] = operand;
  if (++warp.lanes < kLanes) {
    GiveWay(Wait::kWarp);
    return;
  }
  compute(warp.operands);
  warp.lanes = 0;
  const size_t first = static_cast<size_t>(self.warp) * kLanes;
  for (size_t i = first; i < first + kLanes; ++i) threads_[i].wait = Wait::kNone;
}

void Block::IssueMatmul(std::function<void()> matmul) {
  const auto unpublished = [](const Thread& each) { return each.unpublished; };
  if (std::any_of(threads_.begin(), threads_.end(), unpublished)) {
    Fault("a matmul of a group, and copies that were not published");
  }
  if (options_.early_copies) matmul();
  // An empty function is to be waited for as well.
  if (options_.early_copies) matmul = [] {};
  warps_[static_cast<size_t>(thread().warp)].matmuls.push_back(std::move(matmul));
}

void Block::FinishMatmuls() {
  for (const auto& matmul : std::exchange(warps_[static_cast<size_t>(thread().warp)].matmuls, {})) {
    matmul();
  }
}

bool Block::RunWarp(size_t warp) {
  bool went = false;
  for (bool again = true; again && !faulty();) {
    again = false;
    for (size_t i = 0; i < kLanes && !faulty(); ++i) {
      const size_t lane = options_.descending ? kLanes - 1 - i : i;
      const size_t index = warp * kLanes + lane;
      if (index >= threads_.size()) continue;
      if (threads_[index].ended || threads_[index].wait != Wait::kNone) continue;
      current_ = index;
      threadIdx = threads_[index].index;
      fibers_[index].Resume();
      again = true;
    }
    went = went || again;
  }
  return went;
}

std::string Block::DescribeStandstill() const {
  size_t ended = 0;
  std::string warps;
  for (const Thread& thread : threads_) ended += thread.ended ? 1 : 0;
  for (const Warp& warp : warps_) {
    if (warp.lanes == 0) continue;
    warps += std::string("; ") + std::to_string(warp.lanes) + " lanes of a warp wait at " +
             warp.instruction;
  }
  return "a standstill: of " + std::to_string(threads_.size()) + " threads " +
         std::to_string(at_barrier_) + " wait at a barrier and " + std::to_string(ended) +
         " have ended" + warps;
}

void Block::Run(const Index3& grid, const Index3& block, const Index3& index, size_t shared_bytes,
                const std::function<void()>& kernel, const KernelOptions& options) {
  const size_t count = size_t{block.x} * block.y * block.z;
  while (fibers_.size() < count) fibers_.emplace_back();
  threads_.assign(count, Thread());
  const size_t warps = (count + kLanes - 1) / kLanes;
  warps_.assign(warps, Warp());
  shared_bytes_ = shared_bytes;
  // Exactly as long as asked for, so that AddressSanitizer sees what is beyond.
  void* memory = nullptr;
  if (posix_memalign(&memory, 128, std::max<size_t>(shared_bytes, 1)) != 0) std::abort();
  std::memset(memory, 0xff, shared_bytes);
  shared_.reset(static_cast<unsigned char*>(memory));
  kernel_ = &kernel;
  options_ = options;
  gridDim = grid;
  blockDim = block;
  blockIdx = index;
  at_barrier_ = 0;
  fault_.clear();
  ++statistics_.blocks;
  for (size_t i = 0; i < count; ++i) {
    const auto n = static_cast<unsigned>(i);
    threads_[i].index = {n % block.x, n / block.x % block.y, n / (block.x * block.y)};
    threads_[i].lane = static_cast<int>(i % kLanes);
    threads_[i].warp = static_cast<int>(i / kLanes);
    threads_[i].copies.resize(1);
    fibers_[i].Restart(&Block::Enter, this);
  }

  const auto ended = [](const Thread& thread) { return thread.ended; };
  while (!faulty() && !std::all_of(threads_.begin(), threads_.end(), ended)) {
    bool went = false;
    for (size_t i = 0; i < warps; ++i) went |= RunWarp(options_.descending ? warps - 1 - i : i);
    if (!went && !faulty()) fault_ = DescribeStandstill();
  }
  for (const Warp& warp : warps_) {
    if (!faulty() && !warp.matmuls.empty()) fault_ = "matmuls of a group that nobody waited for";
  }
  if (!faulty()) return;
  const std::lock_guard lock(TheRecord().mutex);
  if (!options_.collect_faults) {
    std::fprintf(stderr, "fault in an emulated CUDA kernel: %s\n", fault_.c_str());
    std::abort();
  }
  TheRecord().faults.push_back(fault_);
}

void DoCopy(const Copy& copy) {
  unsigned char* to = SharedBytes16(copy.to);
  if (copy.from == nullptr) {
    std::memset(to, 0, 16);
  } else {
    std::memcpy(to, copy.from, 16);
  }
}

}  // namespace

void SetKernelOptions(const KernelOptions& options) {
  const std::lock_guard lock(TheRecord().mutex);
  TheRecord().options = options;
}

std::vector<std::string> TakeFaults() {
  const std::lock_guard lock(TheRecord().mutex);
  return std::exchange(TheRecord().faults, {});
}

KernelStatistics TakeStatistics() {
  const std::lock_guard lock(TheRecord().mutex);
  return std::exchange(TheRecord().statistics, {});
}

void RunGrid(const Index3& grid, const Index3& block, size_t shared_bytes,
             const std::function<void()>& kernel) {
  KernelOptions options;
  {
    const std::lock_guard lock(TheRecord().mutex);
    options = TheRecord().options;
  }
  Block& running = TheBlock();
  running.statistics() = {};
  const int64_t count = int64_t{grid.x} * grid.y * grid.z;
  for (int64_t i = 0; i < count; ++i) {
    const auto n = static_cast<uint64_t>(options.descending ? count - 1 - i : i);
    const Index3 index = {static_cast<unsigned>(n % grid.x),
                          static_cast<unsigned>(n / grid.x % grid.y),
                          static_cast<unsigned>(n / grid.x / grid.y)};
    running.Run(grid, block, index, shared_bytes, kernel, options);
    if (running.faulty()) break;
  }
  const std::lock_guard lock(TheRecord().mutex);
  KernelStatistics& sums = TheRecord().statistics;
  const KernelStatistics& more = running.statistics();
  sums.launches += 1;
  sums.blocks += more.blocks;
  sums.matrix_loads += more.matrix_loads;
  sums.matrix_load_conflicts += more.matrix_load_conflicts;
}

int Lane() { return TheBlock().thread().lane; }

unsigned char* SharedMemory() { return TheBlock().shared(); }

unsigned char* SharedBytes16(uint32_t address) {
  Block& block = TheBlock();
  if (address % 16 != 0 || size_t{address} + 16 > block.shared_bytes()) {
    block.Fault("16 bytes at " + std::to_string(address) + " of " +
                std::to_string(block.shared_bytes()) + " bytes of shared memory");
  }
  return block.shared() + address;
}

void CountMatrixLoad(const uint32_t (&addresses)[8]) {
  KernelStatistics& statistics = TheBlock().statistics();
  ++statistics.matrix_loads;
  int accesses = 1;
  for (uint32_t banks = 0; banks < 8; ++banks) {  // of 16 bytes, that is 4 banks each
    int rows = 0;
    for (int i = 0; i < 8; ++i) {
      const bool again = std::find(addresses, addresses + i, addresses[i]) != addresses + i;
      rows += addresses[i] / 16 % 8 == banks && !again ? 1 : 0;
    }
    accesses = std::max(accesses, rows);
  }
  statistics.matrix_load_conflicts += accesses - 1;
}

void WaitForBlock() { TheBlock().WaitForBlock(); }

void WithWarp(const char* name, void* operand, void (*compute)(void* const (&operands)[32])) {
  TheBlock().WithWarp(name, operand, compute);
}

void IssueCopy(uint32_t to, const void* from) {
  SharedBytes16(to);  // a fault is here rather than at the wait
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0) {
    TheBlock().Fault("an asynchronous copy from memory that is not aligned to 16 bytes");
  }
  if (TheBlock().options().early_copies) {
    DoCopy({to, from});
  } else {
    TheBlock().thread().copies.back().push_back({to, from});
  }
}

void CommitCopies() { TheBlock().thread().copies.emplace_back(); }

void WaitForCopies(int groups) {
  std::vector<std::vector<Copy>>& copies = TheBlock().thread().copies;
  while (copies.size() - 1 > static_cast<size_t>(groups)) {
    for (const Copy& copy : copies.front()) DoCopy(copy);
    copies.erase(copies.begin());
    TheBlock().thread().unpublished = true;
  }
}

bool HasGroupMatmuls() { return TheBlock().options().group_matmuls; }

void PublishCopies() { TheBlock().thread().unpublished = false; }

void IssueMatmul(std::function<void()> matmul) { TheBlock().IssueMatmul(std::move(matmul)); }

void FinishMatmuls() { TheBlock().FinishMatmuls(); }

[[noreturn]] void Fault(const std::string& what) { TheBlock().Fault(what); }

}  // namespace attendant::cuda_emulation
