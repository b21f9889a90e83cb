// SPDX-License-Identifier: Apache-2.0
#include "server/net/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace attendant {
namespace {

TEST(DescriptorLimitTest, RaisesTheSoftLimitToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(RaiseDescriptorLimit(), static_cast<int64_t>(before.rlim_max));
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(DescriptorLimitTest, LeavesDescriptorsForTheRest) {
  EXPECT_EQ(ConnectionsWithin(1024), 768);
  EXPECT_EQ(ConnectionsWithin(524288), 524032);
  EXPECT_EQ(ConnectionsWithin(300), 150);  // half, rather than 44
}

}  // namespace
}  // namespace attendant
