// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer what the distribution's Abseil does. That library is built without it, so
// every absl::Mutex would look like no lock at all, and everything it guards like a race. The
// definitions here come before the shared library's, call those, and report the order that they
// make.
//
// Conditions (Await, LockWhen) are polled by the waiting thread instead: Abseil evaluates them on
// whichever thread unlocks, after the point where that can be reported. Linked into the programs
// and tests of the tsan preset only.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

#define ATTENDANT_QUOTE_EXPANDED(text) #text
#define ATTENDANT_QUOTE(text) ATTENDANT_QUOTE_EXPANDED(text)

// The library's own definition of a member, whose mangled name after the namespaces is `name`.
template <typename Function>
Function Next(const char* name) {
  const std::string ns = ATTENDANT_QUOTE(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string symbol = "_ZN4absl" + std::to_string(ns.size()) + ns + name;
  void* const found = dlsym(RTLD_NEXT, symbol.c_str());
  if (found == nullptr) _exit(99);
  return reinterpret_cast<Function>(found);
}

using MutexFunction = void (*)(Mutex*);

bool PollUntil(Mutex& mutex, const Condition& condition, Time deadline) {
  bool met = condition.Eval();
  while (!met && Now() < deadline) {
    mutex.Unlock();
    usleep(50);
    mutex.Lock();
    met = condition.Eval();
  }
  return met;
}

}  // namespace

void Mutex::Lock() {
  static const auto next = Next<MutexFunction>("5Mutex4LockEv");
  next(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  static const auto next = Next<MutexFunction>("5Mutex6UnlockEv");
  __tsan_release(this);
  next(this);
}

void Mutex::ReaderLock() {
  static const auto next = Next<MutexFunction>("5Mutex10ReaderLockEv");
  next(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  static const auto next = Next<MutexFunction>("5Mutex12ReaderUnlockEv");
  __tsan_release(this);
  next(this);
}

bool Mutex::TryLock() {
  static const auto next = Next<bool (*)(Mutex*)>("5Mutex7TryLockEv");
  const bool locked = next(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::Await(const Condition& condition) { PollUntil(*this, condition, InfiniteFuture()); }

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  return PollUntil(*this, condition, Now() + timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  return PollUntil(*this, condition, deadline);
}

void Mutex::LockWhen(const Condition& condition) {
  Lock();
  PollUntil(*this, condition, InfiniteFuture());
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  return LockWhenWithDeadline(condition, Now() + timeout);
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  Lock();
  return PollUntil(*this, condition, deadline);
}

void CondVar::Wait(Mutex* mutex) {
  static const auto next = Next<void (*)(CondVar*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  next(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static const auto next =
      Next<bool (*)(CondVar*, Mutex*, Time)>("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool timed_out = next(this, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  return WaitWithDeadline(mutex, Now() + timeout);
}

void Notification::Notify() {
  static const auto next = Next<void (*)(Notification*)>("12Notification6NotifyEv");
  __tsan_release(this);
  next(this);
}

void Notification::WaitForNotification() const {
  WaitForNotificationWithDeadline(InfiniteFuture());
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  return WaitForNotificationWithDeadline(Now() + timeout);
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  while (!HasBeenNotified() && Now() < deadline) usleep(50);
  __tsan_acquire(const_cast<Notification*>(this));
  return HasBeenNotified();
}

ABSL_NAMESPACE_END
}  // namespace absl
