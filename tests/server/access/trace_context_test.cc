// SPDX-License-Identifier: Apache-2.0
#include "server/access/trace_context.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

// The example of the specification.
constexpr char kParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kIds[] = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";

bool Taken(const std::string& traceparent) {
  return ParseTraceContext(traceparent, "").has_value();
}
std::string State(const std::string& tracestate) {
  return ParseTraceContext(kParent, tracestate)->state;
}

TEST(TraceContextTest, ReadsAndWrites) {
  const auto context = ParseTraceContext(kParent, "");
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->span_id(), "00f067aa0ba902b7");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->traceparent(), kParent);
}

TEST(TraceContextTest, OnlyTheSampledFlagGoesOn) {
  EXPECT_EQ(ParseTraceContext(absl::StrCat("00-", kIds, "-ff"), "")->traceparent(), kParent);
  EXPECT_EQ(ParseTraceContext(absl::StrCat("00-", kIds, "-fe"), "")->traceparent(),
            absl::StrCat("00-", kIds, "-00"));
}

TEST(TraceContextTest, LaterVersionsMayBeLonger) {
  EXPECT_EQ(ParseTraceContext(absl::StrCat("cc-", kIds, "-01-more"), "")->traceparent(), kParent);
  EXPECT_TRUE(Taken(absl::StrCat("cc-", kIds, "-01")));
  EXPECT_FALSE(Taken(absl::StrCat("cc-", kIds, "-01.more")));
  EXPECT_FALSE(Taken(absl::StrCat("00-", kIds, "-01-more")));
  EXPECT_FALSE(Taken(absl::StrCat("ff-", kIds, "-01")));
}

TEST(TraceContextTest, WhatIsNotValidIsNoContext) {
  for (const char* parent : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                             "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                             "00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01",
                             "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                             "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                             "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
                             "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                             "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                             "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
                             "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01"}) {
    EXPECT_FALSE(Taken(parent)) << parent;
  }
}

TEST(TraceContextTest, AValidStateIsPassedOn) {
  EXPECT_EQ(State("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  EXPECT_EQ(State("tenant@vendor=a b , ,x/y*_-=1"), "tenant@vendor=a b,x/y*_-=1");
  EXPECT_EQ(State("\ta=1\t,\tb=2\r\n"), "a=1,b=2") << "gRPC sends no control character";
  std::string members = "a0=1";
  for (int i = 1; i < 32; ++i) absl::StrAppend(&members, ",a", i, "=1");
  EXPECT_EQ(State(members), members);
  EXPECT_EQ(State(absl::StrCat(members, ",a32=1")), "");
}

TEST(TraceContextTest, AnInvalidStateIsDroppedAlone) {
  for (const char* state : {"", ",", "a", "=1", "A=1", "a=", "a=b=c", "a=\x01", "a=1,b"}) {
    EXPECT_EQ(State(state), "") << state;
  }
  EXPECT_EQ(State(absl::StrCat("a=", std::string(511, 'x'))), "");
}

TEST(RequestIdTest, IsPrintableAndShort) {
  EXPECT_TRUE(IsRequestId("7f3e-1 (retry)"));
  EXPECT_TRUE(IsRequestId(std::string(256, 'x')));
  EXPECT_FALSE(IsRequestId(""));
  EXPECT_FALSE(IsRequestId(std::string(257, 'x')));
  EXPECT_FALSE(IsRequestId("a\nb"));
  EXPECT_FALSE(IsRequestId("\xc3\xa4"));
}

}  // namespace
}  // namespace attendant
