// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>

namespace attendant {

// A function with a stack of its own, which runs until it yields and can be resumed. To be used by
// one thread of the system at a time. What is on an abandoned stack is not destroyed.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Resume calls `entry(argument)`, whatever the fiber was doing before.
  void Restart(void (*entry)(void*), void* argument);
  // Runs it until it yields or its function returns.
  // REQUIRES: restarted, and its function has not returned since.
  void Resume();
  // To be called by what the fiber runs: gives way to whoever resumed it.
  void Yield();
  // To be called by what the fiber runs, as the last thing; Resume returns for the last time.
  [[noreturn]] void Finish();

 private:
  static void Enter(unsigned low, unsigned high);
  void Switch(bool into, bool for_good);

  std::byte* stack_ = nullptr;  // with a page below it that must not be touched
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool fresh_ = false;
  ucontext_t own_;
  [[maybe_unused]] jmp_buf own_jump_, resumer_jump_;
  // For the sanitizers, which follow the switches.
  [[maybe_unused]] ucontext_t resumer_;
  [[maybe_unused]] void* own_fake_stack_ = nullptr;
  [[maybe_unused]] void* resumer_fake_stack_ = nullptr;
  [[maybe_unused]] const void* resumer_stack_ = nullptr;
  [[maybe_unused]] size_t resumer_stack_bytes_ = 0;
  [[maybe_unused]] void* own_tsan_ = nullptr;
  [[maybe_unused]] void* resumer_tsan_ = nullptr;
};

}  // namespace attendant
