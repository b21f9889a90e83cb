// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/missed_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Status kRefused = absl::UnavailableError("no descriptor is left");

class MissedLoadsTest : public ::testing::Test {
 protected:
  // Fails the try at `now_` and returns how long no other is due.
  absl::Duration PauseOf(const std::string& name) {
    missed_.End(name, kRefused, now_);
    absl::Duration pause;
    while (missed_.TakeDue({}, now_ + pause).empty()) pause += absl::Seconds(1);
    now_ += pause;
    return pause;
  }

  MissedLoads missed_{absl::Seconds(5)};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(MissedLoadsTest, EachTryIsMadeOnce) {
  missed_.End("a", kRefused, now_);
  missed_.End("b", absl::InvalidArgumentError("the file's fault"), now_);
  missed_.End("c", absl::OkStatus(), now_);
  EXPECT_THAT(missed_.TakeDue({}, now_), ElementsAre("a"));
  EXPECT_THAT(missed_.TakeDue({}, now_ + absl::Hours(1)), IsEmpty()) << "it goes on";
}

TEST_F(MissedLoadsTest, WhatCannotBeReadWaitsUntilItCan) {
  missed_.End("a", kRefused, now_);
  EXPECT_THAT(missed_.TakeDue({"a"}, now_), IsEmpty());
  EXPECT_THAT(missed_.TakeDue({}, now_), ElementsAre("a"));
}

TEST_F(MissedLoadsTest, ThePausesGrowToAMinute) {
  for (const int seconds : {0, 5, 10, 20, 40, 60, 60}) {
    EXPECT_EQ(PauseOf("a"), absl::Seconds(seconds));
  }
  missed_.End("a", absl::OkStatus(), now_);
  EXPECT_EQ(PauseOf("a"), absl::ZeroDuration()) << "it was loaded meanwhile";
}

}  // namespace
}  // namespace attendant
