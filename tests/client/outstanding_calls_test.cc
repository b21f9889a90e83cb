// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "client/channel.h"

namespace attendant::client {
namespace {

TEST(OutstandingCallsTest, WaitsUntilTheContextIsDestroyed) {
  OutstandingCalls calls;
  auto context = std::make_unique<grpc::ClientContext>();
  calls.Add(context.get());
  std::atomic<bool> destroyed{false};
  absl::Notification destroying;
  std::thread waiter([&] {
    destroying.WaitForNotification();
    calls.CancelAndWait();
    EXPECT_TRUE(destroyed);
  });
  calls.End(context.get(), [&] {
    destroying.Notify();
    for (int i = 0; i < 1000; ++i)
      std::this_thread::yield();  // the waiter's chance to go too early
    context.reset();
    destroyed = true;
  });
  waiter.join();
}

}  // namespace
}  // namespace attendant::client
