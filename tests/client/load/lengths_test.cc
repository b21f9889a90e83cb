// SPDX-License-Identifier: Apache-2.0
#include "client/load/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "client/load/payload.h"
#include "tests/support/checkpoint.h"

namespace attendant::client {
namespace {

std::vector<int64_t> SampleMany(absl::string_view spec) {
  const absl::StatusOr<LengthDistribution> lengths = LengthDistribution::Parse(spec);
  EXPECT_TRUE(lengths.ok()) << lengths.status();
  Random random(3);
  std::vector<int64_t> samples(20000);
  for (int64_t& sample : samples) sample = lengths->Sample(random);
  std::sort(samples.begin(), samples.end());
  return samples;
}

double Mean(const std::vector<int64_t>& samples) {
  double sum = 0;
  for (int64_t sample : samples) sum += static_cast<double>(sample);
  return sum / static_cast<double>(samples.size());
}

TEST(LengthsTest, Fixed) {
  const std::vector<int64_t> samples = SampleMany("fixed:128");
  EXPECT_EQ(samples.front(), 128);
  EXPECT_EQ(samples.back(), 128);
}

TEST(LengthsTest, UniformReachesBothEnds) {
  const std::vector<int64_t> samples = SampleMany("uniform:16:256");
  EXPECT_EQ(samples.front(), 16);
  EXPECT_EQ(samples.back(), 256);
  EXPECT_NEAR(Mean(samples), 136, 2);
}

TEST(LengthsTest, MixedHasTheMeanAndMedianItIsKnownFor) {
  const std::vector<int64_t> samples = SampleMany("mixed");
  EXPECT_GE(samples.front(), 4);
  EXPECT_LE(samples.back(), 512);
  EXPECT_NEAR(static_cast<double>(samples[samples.size() / 2]), 48, 1);
  EXPECT_NEAR(Mean(samples), 55.6, 1);
}

TEST(LengthsTest, LogNormalIsCutOffAtBothEnds) {
  const std::vector<int64_t> samples = SampleMany("lognormal:50:2:40:60");
  EXPECT_EQ(samples.front(), 40);
  EXPECT_EQ(samples.back(), 60);
}

TEST(LengthsTest, TakesTheLengthsOfAFile) {
  const TempDirectory folder;
  const std::string path = folder / "lengths.txt";
  WriteFile(path, "5 9\n100\n");
  const std::vector<int64_t> samples = SampleMany("file:" + path);
  EXPECT_EQ(std::set<int64_t>(samples.begin(), samples.end()), (std::set<int64_t>{5, 9, 100}));
  for (const char* contents : {"", "5 x", "0", "-3 7", "99999999"}) {
    WriteFile(path, contents);
    const absl::Status status = LengthDistribution::Parse("file:" + path).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << contents << ": " << status;
  }
}

TEST(LengthsTest, RefusesWhatItCannotRead) {
  for (const char* spec :
       {"", "fixed", "fixed:x", "fixed:0", "fixed:-3", "uniform:5", "uniform:9:5", "normal:1:2",
        "file:/nonexistent.txt", "lognormal:48:0.5:4", "lognormal:0:0.5:4:512",
        "lognormal:nan:1:4:512", "fixed:9999999"}) {
    const absl::Status status = LengthDistribution::Parse(spec).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << spec << ": " << status;
  }
}

TEST(LengthsTest, LimitHolds) {
  absl::StatusOr<LengthDistribution> lengths = LengthDistribution::Parse("uniform:100:200");
  lengths->Limit(64);
  Random random(1);
  EXPECT_EQ(lengths->Sample(random), 64);
}

TEST(PayloadTest, EveryTextOnceInAnOrderThatTheSeedFixes) {
  PayloadSpec spec;
  for (char c = 'a'; c <= 'z'; ++c) spec.texts.push_back(std::string(1, c));
  spec.batch = 4;
  std::vector<std::string> sent;
  for (const Payload& payload : MakePayloads(spec)) {
    EXPECT_EQ(payload.texts.size(), 4);
    sent.insert(sent.end(), payload.texts.begin(), payload.texts.end());
  }
  ASSERT_EQ(sent.size(), 28);
  EXPECT_EQ(sent[26], sent[0]);
  sent.resize(26);
  EXPECT_NE(sent, spec.texts);
  EXPECT_EQ(MakePayloads(spec)[0].texts, std::vector<std::string>(sent.begin(), sent.begin() + 4));
  std::sort(sent.begin(), sent.end());
  EXPECT_EQ(sent, spec.texts);
}

TEST(PayloadTest, IdsAreWithinTheVocabulary) {
  PayloadSpec spec;
  spec.lengths = *LengthDistribution::Parse("uniform:1:20");
  spec.vocab = 7;
  spec.batch = 3;
  int32_t largest = 0;
  for (const Payload& payload : MakePayloads(spec)) {
    ASSERT_EQ(payload.ids.size(), 3);
    for (const std::vector<int32_t>& ids : payload.ids) {
      ASSERT_FALSE(ids.empty());
      ASSERT_GE(*std::min_element(ids.begin(), ids.end()), 0);
      largest = std::max(largest, *std::max_element(ids.begin(), ids.end()));
    }
  }
  EXPECT_EQ(largest, 6);
}

TEST(PayloadTest, RerankersGetPairs) {
  const std::vector<Payload> payloads = {{.texts = {"a", "b"}, .ids = {}},
                                         {.texts = {}, .ids = {{0, 1}, {1}}}};
  const std::vector<RerankPayload> reranks = ToRerank(payloads);
  ASSERT_EQ(reranks.size(), 2);
  EXPECT_EQ(reranks[0].query, SpellOut({0, 1}));
  EXPECT_EQ(reranks[0].texts, payloads[0].texts);
  EXPECT_EQ(reranks[1].query, "a");
  EXPECT_EQ(reranks[1].texts, (std::vector<std::string>{SpellOut({0, 1}), SpellOut({1})}));
}

}  // namespace
}  // namespace attendant::client
