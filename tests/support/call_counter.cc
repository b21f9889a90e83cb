// SPDX-License-Identifier: Apache-2.0
#include "tests/support/call_counter.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "oneapi/dnnl/dnnl.h"

namespace attendant {
namespace {

// Plain atomics with constant initial values: malloc is called before any constructor runs.
constinit std::atomic<bool> counting{false};
constinit std::atomic<int64_t> allocations{0};
constinit std::atomic<int64_t> worker_allocations{0};
constinit std::atomic<int64_t> execute_allocations{0};
constinit std::atomic<int64_t> executions{0};
constinit std::atomic<int64_t> locks{0};
constinit std::atomic<int64_t> primitives{0};

void Count(std::atomic<int64_t>& counter) {
  if (counting.load(std::memory_order_relaxed)) counter.fetch_add(1, std::memory_order_relaxed);
}

constinit thread_local bool executing = false;
constinit thread_local bool owns_counter = false;

void CountAllocation() {
  Count(executing ? execute_allocations : allocations);
  if (!executing && !owns_counter) Count(worker_allocations);
}

// The function of that name in the library that would have served without this file.
template <typename Function>
class Real {
 public:
  explicit constexpr Real(const char* name) : name_(name) {}

  Function* get() {
    void* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = dlsym(RTLD_NEXT, name_);
      if (found == nullptr) std::abort();
      found_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

constinit Real<int(pthread_mutex_t*)> mutex_lock("pthread_mutex_lock");
constinit Real<int(pthread_mutex_t*)> mutex_trylock("pthread_mutex_trylock");
constinit Real<int(pthread_rwlock_t*)> rwlock_rdlock("pthread_rwlock_rdlock");
constinit Real<int(pthread_rwlock_t*)> rwlock_wrlock("pthread_rwlock_wrlock");
constinit Real<dnnl_status_t(dnnl_primitive_t*, const_dnnl_primitive_desc_t)> primitive_create(
    "dnnl_primitive_create");
constinit Real<dnnl_status_t(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t*)>
    primitive_execute("dnnl_primitive_execute");

}  // namespace

CallCounter::CallCounter() {
  allocations = worker_allocations = execute_allocations = executions = locks = primitives = 0;
  owns_counter = true;
  counting = true;
}

CallCounter::~CallCounter() {
  counting = false;
  owns_counter = false;
}

CallCounts CallCounter::counts() const {
  return {.allocations = allocations,
          .worker_allocations = worker_allocations,
          .execute_allocations = execute_allocations,
          .executions = executions,
          .locks = locks,
          .primitives = primitives};
}

}  // namespace attendant

// dlsym allocates, so the allocator's real functions are glibc's own other names for them.
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  attendant::CountAllocation();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  attendant::CountAllocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  attendant::CountAllocation();
  return __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  attendant::CountAllocation();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  attendant::Count(attendant::locks);
  return attendant::mutex_lock.get()(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  attendant::Count(attendant::locks);
  return attendant::mutex_trylock.get()(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  attendant::Count(attendant::locks);
  return attendant::rwlock_rdlock.get()(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  attendant::Count(attendant::locks);
  return attendant::rwlock_wrlock.get()(lock);
}

dnnl_status_t dnnl_primitive_create(dnnl_primitive_t* primitive, const_dnnl_primitive_desc_t desc) {
  attendant::Count(attendant::primitives);
  return attendant::primitive_create.get()(primitive, desc);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int count, const dnnl_exec_arg_t* arguments) {
  attendant::Count(attendant::executions);
  attendant::executing = true;
  const dnnl_status_t status =
      attendant::primitive_execute.get()(primitive, stream, count, arguments);
  attendant::executing = false;
  return status;
}

}  // extern "C"
