// SPDX-License-Identifier: Apache-2.0
#include "server/net/descriptor_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/in_child.h"

namespace {

bool limit_is_hidden = false;

}  // namespace

// As where the system's call is not allowed.
extern "C" int getrlimit(__rlimit_resource_t resource, rlimit* limit) noexcept {
  if (limit_is_hidden) {
    errno = EPERM;
    return -1;
  }
  return prlimit(0, static_cast<__rlimit_resource>(resource), nullptr, limit);
}

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(DescriptorLimitTest, IsTheUsualOneWhereTheSystemDoesNotTell) {
  limit_is_hidden = true;
  EXPECT_EQ(RaiseDescriptorLimit(), 1024);
  limit_is_hidden = false;
}

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

TEST(DescriptorLimitTest, SaysWhetherTheSystemAllowsTheDescriptors) {
  InChild([] {                            // the hard limit cannot be raised again
    const int next = dup(STDERR_FILENO);  // all below are open
    const auto all = static_cast<rlim_t>(next) + 4;
    for (int opened = next; opened < next + 4; ++opened) close(opened);  // some may be inherited
    const rlimit few{.rlim_cur = all, .rlim_max = all};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_TRUE(CheckDescriptorRoom(4).ok());
    const absl::Status refused = CheckDescriptorRoom(5);
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(
        std::string(refused.message()),
        HasSubstr(absl::StrCat("the system refuses another file descriptor: 4 of 5 opened, the "
                               "process may have ",
                               all, " (ulimit -n)")));
    EXPECT_TRUE(CheckDescriptorRoom(4).ok());
  });
}

TEST(DescriptorLimitTest, LeavesDescriptorsForTheRest) {
  EXPECT_EQ(GrpcConnectionsWithin(4096, 1000), 4096 - 256 - 1000);
  EXPECT_EQ(GrpcConnectionsWithin(524288, 1088), 524288 - 256 - 1088);
  EXPECT_EQ(GrpcConnectionsWithin(1024, 1088), 512);  // beside 256 of HTTP
  EXPECT_EQ(GrpcConnectionsWithin(300, 10), 150);     // half, rather than 34
}

TEST(DescriptorLimitTest, GivesHttpAQuarter) {
  EXPECT_EQ(HttpConnectionsWithin(1024), 256);
  EXPECT_EQ(HttpConnectionsWithin(524288), 131072);
  EXPECT_EQ(HttpRequestsWithin(1024, 64), 192);
  EXPECT_EQ(HttpRequestsWithin(200, 64), 1);
}

}  // namespace
}  // namespace attendant
