// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/profile_sampler.h"

#include <gtest/gtest.h>

namespace attendant::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t CountTaken(ProfileSampler& sampler, ProfileSampler::Clock::time_point& now, int64_t runs,
                   milliseconds between) {
  int64_t taken = 0;
  for (int64_t run = 0; run < runs; ++run, now += between) taken += sampler.Takes(now) ? 1 : 0;
  return taken;
}

TEST(ProfileSamplerTest, TakesOneOfManyRunsThatAreRare) {
  ProfileSampler sampler;
  ProfileSampler::Clock::time_point now{};
  EXPECT_EQ(CountTaken(sampler, now, 127, seconds(1)), 0);
  EXPECT_TRUE(sampler.Takes(now));
  EXPECT_EQ(CountTaken(sampler, now, 127, seconds(1)), 0);
  EXPECT_TRUE(sampler.Takes(now));
}

TEST(ProfileSamplerTest, PausesWhereRunsAreMany) {
  ProfileSampler sampler;
  ProfileSampler::Clock::time_point now{};
  EXPECT_EQ(CountTaken(sampler, now, 128, milliseconds(1)), 1);
  const ProfileSampler::Clock::time_point taken = now - milliseconds(1);
  EXPECT_EQ(CountTaken(sampler, now, 9999, milliseconds(1)), 0);
  EXPECT_EQ(now, taken + seconds(10));
  EXPECT_TRUE(sampler.Takes(now));
}

TEST(ProfileSamplerTest, IsRarerThanAPercentileAtAnyRate) {
  for (const milliseconds between : {milliseconds(1), milliseconds(20), milliseconds(500)}) {
    ProfileSampler sampler;
    ProfileSampler::Clock::time_point now{};
    EXPECT_LT(CountTaken(sampler, now, 100000, between), 100000 / 100) << between.count() << " ms";
  }
}

}  // namespace
}  // namespace attendant::cuda
