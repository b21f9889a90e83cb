// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fiber/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef ATTENDANT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace attendant {
namespace {

// For functions that never return: with it, the thread sanitizer does not note that they were
// called. What it notes is taken back at the return alone, and a fiber that restarts would fill its
// list of 65,536 calls.
#define ATTENDANT_NO_TSAN __attribute__((no_sanitize("thread")))

constexpr size_t kStackBytes = 256 << 10;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::Fiber() {
  void* memory = mmap(nullptr, kStackBytes + PageBytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, PageBytes(), PROT_NONE) != 0) {
    std::perror("the stack of a fiber");
    std::abort();
  }
  stack_ = static_cast<std::byte*>(memory) + PageBytes();
#ifdef ATTENDANT_TSAN
  own_tsan_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef ATTENDANT_TSAN
  __tsan_destroy_fiber(own_tsan_);
#endif
  munmap(stack_ - PageBytes(), kStackBytes + PageBytes());
}

void Fiber::Restart(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  fresh_ = true;
  own_fake_stack_ = nullptr;
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_;
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2, static_cast<unsigned>(self),
              static_cast<unsigned>(uint64_t{self} >> 32));
}

ATTENDANT_NO_TSAN void Fiber::Enter(unsigned low, unsigned high) {
  auto* self = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(uint64_t{high} << 32 | low));
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &self->resumer_stack_, &self->resumer_stack_bytes_);
#endif
  self->entry_(self->argument_);
  self->Finish();
}

void Fiber::Resume() { Switch(/*into=*/true, /*for_good=*/false); }

void Fiber::Yield() { Switch(/*into=*/false, /*for_good=*/false); }

ATTENDANT_NO_TSAN void Fiber::Finish() {
  Switch(/*into=*/false, /*for_good=*/true);
  std::abort();  // nobody resumes it
}

#if defined(__SANITIZE_ADDRESS__) || defined(ATTENDANT_TSAN)

ATTENDANT_NO_TSAN void Fiber::Switch(bool into, [[maybe_unused]] bool for_good) {
#ifdef __SANITIZE_ADDRESS__
  if (into) {
    __sanitizer_start_switch_fiber(&resumer_fake_stack_, stack_, kStackBytes);
  } else {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &own_fake_stack_, resumer_stack_,
                                   resumer_stack_bytes_);
  }
#endif
#ifdef ATTENDANT_TSAN
  if (into) resumer_tsan_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(into ? own_tsan_ : resumer_tsan_, 0);
#endif
  swapcontext(into ? &resumer_ : &own_, into ? &own_ : &resumer_);
#ifdef __SANITIZE_ADDRESS__
  if (into) {
    __sanitizer_finish_switch_fiber(resumer_fake_stack_, nullptr, nullptr);
  } else {
    __sanitizer_finish_switch_fiber(own_fake_stack_, &resumer_stack_, &resumer_stack_bytes_);
  }
#endif
}

#else

// swapcontext asks the system for the signal mask, twice for each of a hundred million switches;
// jumps do not.
void Fiber::Switch(bool into, bool /*for_good*/) {
  if (!into) {
    if (_setjmp(own_jump_) == 0) _longjmp(resumer_jump_, 1);
    return;
  }
  if (_setjmp(resumer_jump_) != 0) return;
  if (!fresh_) _longjmp(own_jump_, 1);
  fresh_ = false;
  setcontext(&own_);
}

#endif

}  // namespace attendant
