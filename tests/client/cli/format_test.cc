// SPDX-License-Identifier: Apache-2.0
#include "client/cli/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/commands/load_report.h"
#include "client/cli/commands/similarity.h"
#include "client/cli/files/npy.h"

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FormatTest, OneLineCutsBetweenCodePoints) {
  EXPECT_EQ(OneLine("short", 5), "short");
  EXPECT_EQ(OneLine("longer", 5), "long…");
  EXPECT_EQ(OneLine("ééééé", 5), "ééééé");
  EXPECT_EQ(OneLine("éééééé", 5), "éééé…");
  EXPECT_EQ(OneLine("a\tb\nc\x1b[1m", 20), "a b c [1m");
  EXPECT_EQ(OneLine("", 5), "");
}

TEST(FormatTest, FirstValues) {
  const std::vector<float> values = {0.5f, -0.25f, 1.0f};
  EXPECT_EQ(FirstValues(values, 2), "[  0.5000 -0.2500 … ]");
  EXPECT_EQ(FirstValues(values, 3), "[  0.5000 -0.2500  1.0000 ]");
}

TEST(FormatTest, TablesAlign) {
  EXPECT_EQ(Table({{"MODEL", "STATE"}, {"a", "ready"}, {"longer-name", "x"}}),
            "MODEL        STATE\na            ready\nlonger-name  x\n");
}

TEST(FormatTest, Thousands) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(1000), "1,000");
  EXPECT_EQ(Thousands(-1234567), "-1,234,567");
  EXPECT_EQ(Thousands(-123456), "-123,456");
}

TEST(FormatTest, JsonFloatsAreShortAndInvalidTextIsReplaced) {
  EXPECT_EQ(Dump(FloatJson{{"x", 0.1f}, {"a", "b\xff"}}), "{\"x\":0.1,\"a\":\"b\uFFFD\"}");
}

TEST(SimilarityTest, Cosines) {
  const Tensor embeddings{.shape = {4, 2}, .values = {1, 0, 0, 2, 3, 3, 0, 0}};
  const Tensor cosines = CosineMatrix(embeddings);
  EXPECT_THAT(cosines.shape, ElementsAre(4, 4));
  EXPECT_FLOAT_EQ(cosines.values[0], 1);
  EXPECT_FLOAT_EQ(cosines.values[1], 0);
  EXPECT_FLOAT_EQ(cosines.values[2], std::sqrt(0.5f));
  EXPECT_FLOAT_EQ(cosines.values[15], 0);
  const std::vector<SimilarPair> pairs = MostSimilar(cosines, 2);
  ASSERT_EQ(pairs.size(), 2);
  EXPECT_EQ(pairs[0].first, 0);
  EXPECT_EQ(pairs[0].second, 2);
  EXPECT_EQ(MostSimilar(cosines, 100).size(), 6);
}

TEST(SimilarityTest, DescribesMatrixAndPairs) {
  const std::vector<std::string> texts = {"one", "two"};
  const Tensor embeddings{.shape = {2, 2}, .values = {1, 0, 1, 0}};
  const std::string text = DescribeSimilarity(texts, embeddings, 5);
  EXPECT_THAT(text, HasSubstr("  1   1.00  1.00  one\n"));
  EXPECT_THAT(text, HasSubstr("   1.00  one\n         two\n"));
}

// As the format's definition has it: magic, version 1.0, header size, header, values.
TEST(NpyTest, WritesHeaderAndValues) {
  const std::string path = ::testing::TempDir() + "/npy_test.npy";
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(WriteNpy(path, {2, 3}, values).ok());
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  ASSERT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\1\0", 8));
  const size_t header_bytes =
      static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ((10 + header_bytes) % 64, 0);
  const std::string header = bytes.substr(10, header_bytes);
  EXPECT_EQ(header.find("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"), 0);
  EXPECT_EQ(header.back(), '\n');
  ASSERT_EQ(bytes.size(), 10 + header_bytes + 24);
  EXPECT_EQ(std::memcmp(bytes.data() + 10 + header_bytes, values.data(), 24), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(WriteNpy("/nonexistent/x.npy", {2, 3}, values)));
}

TEST(ShortDurationTest, DurationsHaveThreeDigitsThatMatter) {
  EXPECT_EQ(ShortDuration(absl::ZeroDuration()), "0 s");
  EXPECT_EQ(ShortDuration(absl::Nanoseconds(1234)), "1.23 us");
  EXPECT_EQ(ShortDuration(absl::Microseconds(999)), "999 us");
  EXPECT_EQ(ShortDuration(absl::Nanoseconds(999900)), "1.00 ms");
  EXPECT_EQ(ShortDuration(absl::Microseconds(12345)), "12.3 ms");
  EXPECT_EQ(ShortDuration(absl::Milliseconds(123456)), "123 s");
}

class LoadReportTest : public ::testing::Test {
 protected:
  LoadReportTest() {
    description_.protocol = "attendant.v1";
    description_.server = "host:1";
    description_.model = "toy";
    description_.plan = {.requests_per_s = 200,
                         .max_outstanding = 50,
                         .connections = 2,
                         .warmup = absl::Seconds(1),
                         .duration = absl::Seconds(9)};
    summary_.window = absl::Seconds(9);
    summary_.ok = 12345;
    summary_.failed = 2;
    summary_.not_sent = 7;
    summary_.requests_per_s = 1371.6;
    summary_.sequences_per_s = 1371.6;
    summary_.p99 = absl::Microseconds(12345);
    summary_.errors["RESOURCE_EXHAUSTED"] = {.count = 2,
                                             .first_message = "the queue\nis full",
                                             .p50 = absl::Milliseconds(1),
                                             .p99 = absl::Milliseconds(2),
                                             .max = absl::Milliseconds(3)};
  }

  LoadDescription description_;
  LoadSummary summary_;
};

TEST_F(LoadReportTest, TableTellsEverything) {
  const std::string report = FormatReport(description_, summary_);
  EXPECT_THAT(report, HasSubstr("open loop, 200 requests/s at random times on 2 connections"));
  EXPECT_THAT(report, HasSubstr("12,345 ok, 2 failed, 7 not sent (50 were outstanding)"));
  EXPECT_THAT(report, HasSubstr("1,372 requests/s"));
  EXPECT_THAT(report, HasSubstr("unknown tokens/s"));
  EXPECT_THAT(report, HasSubstr("p99 12.3 ms"));
  EXPECT_THAT(report,
              HasSubstr("RESOURCE_EXHAUSTED 2, after p50 1.00 ms   p99 2.00 ms   max 3.00 ms, the "
                        "first: the queue is full"));
}

TEST_F(LoadReportTest, JsonHasSecondsAndNulls) {
  const nlohmann::ordered_json json = ReportToJson(description_, summary_);
  EXPECT_EQ(json["loop"], "open");
  EXPECT_EQ(json["requests"]["not_sent"], 7);
  EXPECT_DOUBLE_EQ(json["latency_s"]["p99"].get<double>(), 0.012345);
  EXPECT_TRUE(json["tokens_per_s"].is_null());
  EXPECT_TRUE(json["server_mean_s"].is_null());
  EXPECT_EQ(json["errors"]["RESOURCE_EXHAUSTED"]["count"], 2);
}

TEST_F(LoadReportTest, ProgressGoesFromNothingToAll) {
  EXPECT_THAT(FormatProgress(description_.plan, {}, absl::ZeroDuration()),
              HasSubstr("   0 %  warming up"));
  const std::string half = FormatProgress(description_.plan, summary_, absl::Seconds(5));
  EXPECT_THAT(half, HasSubstr("[===============>              ]  50 %"));
  EXPECT_THAT(half, HasSubstr("2 failed  7 not sent"));
  EXPECT_THAT(FormatProgress(description_.plan, summary_, absl::Seconds(50)), HasSubstr("100 %"));
}

}  // namespace
}  // namespace attendant::client
