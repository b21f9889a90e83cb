// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/server/heap_peak.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#ifdef ATTENDANT_SANITIZED
// As <sanitizer/allocator_interface.h> has them, which Debian's GCC comes without.
extern "C" {
size_t __sanitizer_get_allocated_size(const volatile void* memory);
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                              void (*on_free)(const volatile void*));
}
#endif

namespace attendant {
namespace {

// Plain atomics with constant initial values: malloc is called before any constructor runs.
constinit std::atomic<int64_t> live{0};
constinit std::atomic<int64_t> peak{0};

void Add(size_t bytes) {
  const auto added = static_cast<int64_t>(bytes);
  const int64_t now = live.fetch_add(added, std::memory_order_relaxed) + added;
  int64_t most = peak.load(std::memory_order_relaxed);
  while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

void Remove(size_t bytes) {
  live.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

}  // namespace
}  // namespace attendant

#ifdef ATTENDANT_SANITIZED

namespace attendant {
namespace {

void OnMalloc(const volatile void* /*memory*/, size_t bytes) { Add(bytes); }
void OnFree(const volatile void* memory) {
  if (memory == nullptr) return;
  Remove(__sanitizer_get_allocated_size(const_cast<const void*>(memory)));
}

// What was allocated before the hooks is subtracted when it is freed: growth is too small by as
// much, which is little once a server is warm.
const int hooks = __sanitizer_install_malloc_and_free_hooks(OnMalloc, OnFree);

}  // namespace
}  // namespace attendant

#else

// glibc's own other names for the allocator's functions.
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) {
  void* memory = __libc_malloc(bytes);
  attendant::Add(malloc_usable_size(memory));
  return memory;
}
void* calloc(size_t count, size_t bytes) {
  void* memory = __libc_calloc(count, bytes);
  attendant::Add(malloc_usable_size(memory));
  return memory;
}
void* realloc(void* memory, size_t bytes) {
  const size_t before = malloc_usable_size(memory);
  void* moved = __libc_realloc(memory, bytes);
  if (moved == nullptr && bytes > 0) return nullptr;
  attendant::Remove(before);
  attendant::Add(malloc_usable_size(moved));
  return moved;
}
void* memalign(size_t alignment, size_t bytes) {
  void* memory = __libc_memalign(alignment, bytes);
  attendant::Add(malloc_usable_size(memory));
  return memory;
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  attendant::Remove(malloc_usable_size(memory));
  __libc_free(memory);
}

}  // extern "C"

#endif

namespace attendant {

int64_t HeapGrowth() {
  static std::atomic<int64_t> begin{live.load()};
  const int64_t growth = peak.load() - begin.load();
  begin = live.load();
  peak = begin.load();
  return growth;
}

}  // namespace attendant
