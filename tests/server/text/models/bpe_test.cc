// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attendant {
namespace {

using testing::ElementsAre;

// Characters a, b, c; "ab", "bc", "abc" of a and "bc", and "cab", which no merge makes.
BpeConfig Config() {
  BpeConfig config;
  config.vocabulary = {{"a", 0}, {"b", 1}, {"c", 2}, {"bc", 3}, {"ab", 4}, {"abc", 5}, {"cab", 6}};
  config.merges = {{1, 2, 3}, {0, 1, 4}, {0, 3, 5}};
  return config;
}

std::vector<int32_t> Ids(const BpeConfig& config, const std::string& piece,
                         std::vector<ByteSpan>* spans = nullptr) {
  std::vector<int32_t> ids;
  Bpe(config).Append(piece, ids, spans);
  return ids;
}

std::vector<size_t> Ends(const BpeConfig& config, const std::string& piece) {
  std::vector<ByteSpan> spans;
  Ids(config, piece, &spans);
  std::vector<size_t> ends;
  for (const ByteSpan& span : spans) {
    EXPECT_EQ(span.begin, ends.empty() ? 0 : ends.back());
    ends.push_back(span.end);
  }
  return ends;
}

TEST(BpeTest, APieceIsItsTokenOnlyWhereTheMergesMakeIt) {
  EXPECT_THAT(Ids(Config(), "abc"), ElementsAre(5));
  EXPECT_THAT(Ids(Config(), "cab"), ElementsAre(2, 4));
  EXPECT_THAT(Ends(Config(), "abc"), ElementsAre(3));
  EXPECT_THAT(Ends(Config(), "cab"), ElementsAre(1, 3));
  BpeConfig whole = Config();
  whole.ignore_merges = true;
  EXPECT_THAT(Ids(whole, "cab"), ElementsAre(6));
}

TEST(BpeTest, APieceOfAnyLengthHasTheSameTokens) {
  for (const size_t count : {1u, 9u, 21u, 22u, 23u, 100u}) {
    std::string piece;
    for (size_t i = 0; i < count; ++i) piece += "abc";
    EXPECT_EQ(Ids(Config(), piece), std::vector<int32_t>(count, 5)) << count;
    EXPECT_EQ(Ends(Config(), piece).size(), count);
    EXPECT_EQ(Ends(Config(), piece + "a").back(), 3 * count + 1);
  }
}

TEST(BpeTest, AnUnknownCharacterIsLeftOutOrUnknown) {
  EXPECT_THAT(Ids(Config(), "abxc"), ElementsAre(5));  // as "abc"
  BpeConfig config = Config();
  config.vocabulary.push_back({"?", 7});
  config.unk_id = 7;
  EXPECT_THAT(Ids(config, "abxc"), ElementsAre(4, 7, 2));
  EXPECT_THAT(Ids(config, "xyabc"), ElementsAre(7, 7, 5));
}

TEST(BpeTest, IdsMayHaveGaps) {
  BpeConfig config = Config();
  config.vocabulary[5].id = 2000000000;
  config.merges[2].merged = 2000000000;
  EXPECT_THAT(Ids(config, "abc"), ElementsAre(2000000000));
  EXPECT_THAT(Ids(config, "ab"), ElementsAre(4));
}

}  // namespace
}  // namespace attendant
