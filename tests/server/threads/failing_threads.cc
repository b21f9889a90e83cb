// SPDX-License-Identifier: Apache-2.0
#include "tests/server/threads/failing_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <limits>

namespace attendant {
namespace {

constexpr int kNoLimit = std::numeric_limits<int>::max();

std::atomic<int> threads_left{kNoLimit};

bool MayStart() {
  int left = threads_left;
  while (left != kNoLimit && left > 0 && !threads_left.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

Create* Real() {
  static auto* const real = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  if (real == nullptr) std::abort();
  return real;
}

}  // namespace

FailingThreads::FailingThreads(int allowed) { threads_left = allowed; }

FailingThreads::~FailingThreads() { threads_left = kNoLimit; }

}  // namespace attendant

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  if (!attendant::MayStart()) return EAGAIN;
  return attendant::Real()(thread, attributes, start, argument);
}
