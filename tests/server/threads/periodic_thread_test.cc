// SPDX-License-Identifier: Apache-2.0
#include "server/threads/periodic_thread.h"

#include <gtest/gtest.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "server/threads/steady_time.h"

namespace attendant {
namespace {

TEST(PeriodicThreadTest, CallsAgainAndAgainAtLeastAnIntervalApart) {
  constexpr int kCalls = 4;
  constexpr absl::Duration kInterval = absl::Milliseconds(5);
  const absl::Time start = SteadyNow();
  absl::BlockingCounter calls(kCalls);
  int done = 0;
  const PeriodicThread thread("periodic", kInterval, [&] {
    if (done++ < kCalls) calls.DecrementCount();
  });
  calls.Wait();
  EXPECT_GE(SteadyNow() - start, kCalls * kInterval);
}

TEST(PeriodicThreadTest, TheDestructorDoesNotWaitForTheInterval) {
  int calls = 0;
  {
    const PeriodicThread thread("periodic", absl::Hours(1), [&] { ++calls; });
  }
  EXPECT_EQ(calls, 0);
}

TEST(PeriodicThreadTest, TheDestructorWaitsForATaskThatRuns) {
  absl::Notification begun;
  bool ended = false;
  {
    const PeriodicThread thread("periodic", absl::ZeroDuration(), [&] {
      if (!begun.HasBeenNotified()) begun.Notify();
      ended = false;
      absl::SleepFor(absl::Milliseconds(5));
      ended = true;
    });
    begun.WaitForNotification();
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace attendant
