// SPDX-License-Identifier: Apache-2.0
#include "server/requests/model_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace attendant {
namespace {

using testing::ElementsAre;

class ModelWaitsTest : public testing::Test {
 protected:
  ModelWaits::Id Add(const std::string& name, absl::Time deadline = absl::InfiniteFuture()) {
    return waits_.Add(deadline, [this, name](const absl::Status& status) {
      absl::MutexLock lock(&mutex_);
      ends_.push_back(name + (status.ok() ? "" : absl::StatusCodeToString(status.code())));
    });
  }
  std::vector<std::string> ends() {
    absl::MutexLock lock(&mutex_);
    return ends_;
  }
  void AwaitEnds(size_t count) {
    const auto there = [this, count]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ends_.size() >= count; };
    absl::MutexLock lock(&mutex_, absl::Condition(&there));
  }

  absl::Mutex mutex_;
  std::vector<std::string> ends_ ABSL_GUARDED_BY(mutex_);
  ModelWaits waits_;
};

TEST_F(ModelWaitsTest, EndsAWaitOnce) {
  const ModelWaits::Id a = Add("a"), b = Add("b");
  waits_.End(b, absl::OkStatus());
  waits_.End(b, absl::CancelledError());
  waits_.End(a, absl::CancelledError());
  waits_.End(0, absl::OkStatus());
  EXPECT_THAT(ends(), ElementsAre("b", "aCANCELLED"));
}

TEST_F(ModelWaitsTest, EndsWaitsAtTheirDeadlines) {
  const absl::Time now = SteadyNow();
  absl::Notification added;  // no wait ends before all are there, however long that takes
  waits_.Add(now, [&added](const absl::Status&) { added.WaitForNotification(); });
  Add("never");
  Add("hours", now + absl::Hours(1));
  Add("late", now + absl::Milliseconds(20));
  const ModelWaits::Id ended = Add("ended", now + absl::Milliseconds(10));
  waits_.End(ended, absl::OkStatus());
  Add("early", now + absl::Milliseconds(5));
  added.Notify();
  AwaitEnds(3);
  EXPECT_GE(SteadyNow(), now + absl::Milliseconds(20));
  EXPECT_THAT(ends(), ElementsAre("ended", "earlyDEADLINE_EXCEEDED", "lateDEADLINE_EXCEEDED"));
  Add("past", now);
  AwaitEnds(4);
}

}  // namespace
}  // namespace attendant
