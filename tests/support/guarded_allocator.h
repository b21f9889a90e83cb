// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

#include "kernels/core/base/int_math.h"
#include "kernels/core/check.h"

namespace attendant {

// Gives memory that ends where its last page does. What reads or writes behind it ends the program.
template <typename T>
class GuardedAllocator {
 public:
  using value_type = T;

  GuardedAllocator() = default;
  template <typename Other>
  GuardedAllocator(const GuardedAllocator<Other>& /*unused*/) {}  // NOLINT: as allocators convert

  T* allocate(size_t count) {
    const int64_t pages = PageBytes(count);
    void* memory = mmap(nullptr, static_cast<size_t>(pages + PageSize()), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
    ATTENDANT_CHECK(memory != MAP_FAILED);
    std::byte* const end = static_cast<std::byte*>(memory) + pages;
    ATTENDANT_CHECK(mprotect(end, static_cast<size_t>(PageSize()), PROT_NONE) == 0);
    return reinterpret_cast<T*>(end) - count;
  }
  void deallocate(T* values, size_t count) {
    std::byte* const end = reinterpret_cast<std::byte*>(values + count);
    munmap(end - PageBytes(count), static_cast<size_t>(PageBytes(count) + PageSize()));
  }

  friend bool operator==(const GuardedAllocator&, const GuardedAllocator&) { return true; }

 private:
  static int64_t PageSize() { return sysconf(_SC_PAGESIZE); }
  static int64_t PageBytes(size_t count) {
    return RoundUp(static_cast<int64_t>(count * sizeof(T)), PageSize());
  }
};

// One that is made with all its values at once ends where its memory does.
template <typename T>
using GuardedVector = std::vector<T, GuardedAllocator<T>>;

}  // namespace attendant
