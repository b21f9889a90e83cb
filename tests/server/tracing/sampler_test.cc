// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/tracing/id_source.h"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr uint64_t kHalf = uint64_t{1} << 63;

bool Samples(const std::string& name, const std::string& share, std::optional<bool> caller,
             uint64_t trace_low) {
  const absl::StatusOr<Sampler> sampler = Sampler::Parse(name, share);
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return sampler.ok() && sampler->Samples(caller, trace_low);
}

TEST(SamplerTest, FollowsTheCallerWhereItsNameSaysSo) {
  for (const bool caller : {false, true}) {
    EXPECT_EQ(Samples("parentbased_always_on", "", caller, 0), caller);
    EXPECT_EQ(Samples("parentbased_always_off", "", caller, 0), caller);
    EXPECT_EQ(Samples("parentbased_traceidratio", "0.5", caller, kHalf), caller);
    EXPECT_EQ(Sampler().Samples(caller, 0), caller);
    EXPECT_TRUE(Samples("always_on", "", caller, ~uint64_t{0}));
    EXPECT_FALSE(Samples("always_off", "", caller, 0));
    EXPECT_FALSE(Samples("traceidratio", "0.5", caller, kHalf));
  }
}

TEST(SamplerTest, WithoutACallerTheTraceDecides) {
  EXPECT_TRUE(Sampler().Samples(std::nullopt, ~uint64_t{0}));
  EXPECT_TRUE(Samples("parentbased_always_on", "", std::nullopt, ~uint64_t{0}));
  EXPECT_FALSE(Samples("parentbased_always_off", "", std::nullopt, 0));
  for (const std::string name : {"traceidratio", "parentbased_traceidratio"}) {
    EXPECT_TRUE(Samples(name, "0.5", std::nullopt, kHalf - 1)) << name;
    EXPECT_FALSE(Samples(name, "0.5", std::nullopt, kHalf)) << name;
    EXPECT_FALSE(Samples(name, "0", std::nullopt, 0)) << name;
    EXPECT_TRUE(Samples(name, "1", std::nullopt, ~uint64_t{0})) << name;
    EXPECT_TRUE(Samples(name, "", std::nullopt, ~uint64_t{0})) << name << ": no share is all";
  }
}

TEST(SamplerTest, TakesItsShareOfTheTraces) {
  const Sampler sampler(0.25, /*follows_caller=*/true);
  IdSource ids(7);
  int taken = 0;
  for (int i = 0; i < 10'000; ++i) taken += sampler.Samples(std::nullopt, ids.Next()) ? 1 : 0;
  EXPECT_NEAR(taken, 2500, 200);
}

TEST(SamplerTest, SaysWhatIsWrong) {
  const absl::Status unknown = Sampler::Parse("parentbased_jaeger_remote", "").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("'parentbased_jaeger_remote'"));
  for (const std::string share : {"-0.1", "1.1", "nan", "half"}) {
    EXPECT_FALSE(Sampler::Parse("traceidratio", share).ok()) << share;
  }
  EXPECT_TRUE(Sampler::Parse("always_on", "half").ok()) << "it takes no share";
}

}  // namespace
}  // namespace attendant
