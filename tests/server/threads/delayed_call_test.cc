// SPDX-License-Identifier: Apache-2.0
#include "server/threads/delayed_call.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/threads/steady_time.h"
#include "tests/server/threads/failing_threads.h"

namespace attendant {
namespace {

TEST(DelayedCallTest, CallsOnceAfterTheDelay) {
  constexpr absl::Duration kDelay = absl::Milliseconds(5);
  const absl::Time start = SteadyNow();
  absl::Notification called;
  std::atomic<int> calls{0};
  const DelayedCall call("delayed", kDelay, [&] {
    if (++calls == 1) called.Notify();
  });
  called.WaitForNotification();
  EXPECT_GE(SteadyNow() - start, kDelay);
  absl::SleepFor(4 * kDelay);
  EXPECT_EQ(calls, 1);
}

TEST(DelayedCallTest, TheDestructorCancelsIt) {
  int calls = 0;
  {
    const DelayedCall call("delayed", absl::Hours(1), [&] { ++calls; });
  }
  EXPECT_EQ(calls, 0);
}

TEST(DelayedCallTest, TheDestructorWaitsForATaskThatRuns) {
  absl::Notification begun;
  bool ended = false;
  {
    const DelayedCall call("delayed", absl::ZeroDuration(), [&] {
      begun.Notify();
      absl::SleepFor(absl::Milliseconds(5));
      ended = true;
    });
    begun.WaitForNotification();
  }
  EXPECT_TRUE(ended);
}

// A drain goes on without it.
TEST(DelayedCallTest, WithoutAThreadItDoesNotCall) {
  int calls = 0;
  {
    const FailingThreads none(0);
    const DelayedCall call("delayed", absl::ZeroDuration(), [&] { ++calls; });
    EXPECT_FALSE(call.has_thread());
  }
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace attendant
