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
#include "client/cli/commands/similarity.h"
#include "client/cli/files/npy.h"
#include "tests/support/checkpoint.h"

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
  EXPECT_EQ(OneLine("\u00c2\u0085\u009b\u00a0\xc2", 20), "\u00c2  \u00a0\xc2");
  EXPECT_EQ(OneLine("a\u009bbc", 3), "a …");
  EXPECT_EQ(OneLine(std::string(1000, 'x')), std::string(1000, 'x'));
}

TEST(FormatTest, FirstValues) {
  const std::vector<float> values = {0.5f, -0.25f, 1.0f};
  EXPECT_EQ(FirstValues(values, 2), "[  0.5000 -0.2500 … ]");
  EXPECT_EQ(FirstValues(values, 3), "[  0.5000 -0.2500  1.0000 ]");
}

TEST(FormatTest, TablesAlign) {
  EXPECT_EQ(Table({{"MODEL", "STATE"}, {"a", "ready"}, {"longer-name", "x"}}),
            "MODEL        STATE\na            ready\nlonger-name  x\n");
  EXPECT_EQ(Table({{"a\n\x1b[2J", "b"}, {"c", "d"}}), "a  [2J  b\nc       d\n");
}

TEST(FormatTest, ByScoreKeepsTheOrderOfEqualScores) {
  const std::vector<float> scores = {0.5f, 2, -1, 0.5f};
  EXPECT_THAT(ByScore(scores, 9), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(ByScore(scores, 2), ElementsAre(1, 0));
  EXPECT_THAT(ByScore({}, 2), ElementsAre());
  EXPECT_THAT(ByScore(std::vector<float>{1, NAN, 2}, 3), ElementsAre(2, 0, 1));
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

TEST(FormatTest, JsonHasNoControlCharacters) {
  EXPECT_EQ(Dump(FloatJson("\x1b \x7f \u0080 \u009b31m \u009f \u00a0")),
            "\"\\u001b \\u007f \\u0080 \\u009b31m \\u009f \u00a0\"");
  EXPECT_EQ(Dump(nlohmann::ordered_json{{"\u0085", 1}}), "{\"\\u0085\":1}");
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

// Rounded, some would be.
TEST(SimilarityTest, NoCosineIsAboveOne) {
  for (int i = 1; i < 100; ++i) {
    const float x = static_cast<float>(i) / 7;
    const Tensor cosines = CosineMatrix({.shape = {1, 2}, .values = {x, 1 - x}});
    EXPECT_LE(cosines.values[0], 1) << x;
  }
}

TEST(SimilarityTest, DescribesMatrixAndPairs) {
  const std::vector<std::string> texts = {"one", "two"};
  const Tensor embeddings{.shape = {2, 2}, .values = {1, 0, 1, 0}};
  const std::string text = DescribeSimilarity(texts, embeddings, 5);
  EXPECT_THAT(text, HasSubstr("  1   1.00  1.00  one\n"));
  EXPECT_THAT(text, HasSubstr("   1.00  one\n         two\n"));
}

// As of one text; one of its chunks has neighbours.
TEST(SimilarityTest, WithoutPairsNoneIsMostSimilar) {
  const std::vector<std::string> texts = {"one"};
  EXPECT_EQ(DescribeSimilarity(texts, {.shape = {1, 2}, .values = {1, 0}}, 5),
            "Cosine similarity\n\n         1\n  1   1.00  one\n\n");
}

// As the format's definition has it: magic, version 1.0, header size, header, values.
TEST(NpyTest, WritesHeaderAndValues) {
  const TempDirectory folder;
  const std::string path = folder / "values.npy";
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

}  // namespace
}  // namespace attendant::client
