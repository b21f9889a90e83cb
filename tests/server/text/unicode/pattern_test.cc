// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/pattern.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "server/text/unicode/characters.h"

namespace attendant {
namespace {

std::string Replaced(const char* regex, const std::string& text) {
  const absl::StatusOr<Pattern> pattern = Pattern::Parse(regex);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  std::string out;
  pattern->AppendReplaced(text, "_", out.max_size(), out);
  return out;
}

TEST(PatternTest, FindsCharactersBeyondAscii) {
  EXPECT_EQ(Replaced(" {2,}", "\xE4\xB8\xAD  \xE6\x96\x87 x"), "\xE4\xB8\xAD_\xE6\x96\x87 x");
  EXPECT_EQ(Replaced("[b-\xC3\xA9]+", "a\xC3\xA9 \xC3\xAA"), "a_ \xC3\xAA");
  EXPECT_EQ(Replaced("[^a]",
                     "a\xF0\x9F\x98\x80"
                     "a"),
            "a_a");
  EXPECT_EQ(Replaced("\\s+", "a\xE3\x80\x80 b"), "a_b");
  EXPECT_EQ(Replaced("\\S+", " \xE4\xB8\xAD "), " _ ");
  EXPECT_EQ(Replaced("\\p{N}", "a\xE2\x85\xA7\xC2\xB2"), "a__");
  EXPECT_EQ(Replaced("[^\\s\\p{L}]", "\xE4\xB8\xAD\xE3\x80\x82"), "\xE4\xB8\xAD_");
  EXPECT_EQ(Replaced("\\P{L}", "\xC3\xA9\xE2\x82\xAC"), "\xC3\xA9_");
}

TEST(PatternTest, AnOptionalBeginningMayBeMissing) {
  EXPECT_EQ(Replaced(" ?\xE4\xB8\xAD", "x\xE4\xB8\xAD \xE4\xB8\xAD"), "x__");
}

std::string Pick(std::mt19937& random, const std::vector<std::string>& list) {
  return list[random() % list.size()];
}

// A text may have to be tried in many ways: against a matcher that tries them all.
TEST(PatternTest, FindsWhatBacktrackingFinds) {
  std::mt19937 random(7);
  const std::vector<std::string> sets = {"a", "b", "[ab]", "[abc]", "[^a]", "[bc]", "\\s", "\\S"};
  const std::vector<std::string> counts = {"", "", "?", "*", "+", "{2}", "{1,3}", "{2,}"};
  int supported = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string regex;
    for (size_t alternative = random() % 3; alternative < 3; ++alternative) {
      if (!regex.empty()) regex += "|";
      for (size_t item = random() % 5; item < 5; ++item) {
        regex += Pick(random, sets) + Pick(random, counts);
      }
      if (random() % 4 == 0) regex += "(?!" + Pick(random, sets) + ")";
    }
    const absl::StatusOr<Pattern> pattern = Pattern::Parse(regex);
    if (!pattern.ok()) continue;  // matches nothing at all
    ++supported;
    const std::regex all_ways(regex);
    for (int j = 0; j < 10; ++j) {
      std::string text;
      for (size_t at = random() % 30; at < 30; ++at) text += "aaabbc d"[random() % 8];
      ASSERT_EQ(Replaced(regex.c_str(), text), std::regex_replace(text, all_ways, "_"))
          << regex << " in '" << text << "'";
    }
  }
  EXPECT_GT(supported, 1000);
}

TEST(PatternTest, RunsInVainAreNotReadAgain) {
  std::string optional;
  for (int i = 0; i < 30; ++i) optional += "a?";
  const std::string regexes[] = {"[a-c]+x",       "[a-c]+x|a",         "a+a+a+a+x",
                                 "a*a*a*[ab]*x",  "[a-c]+(?![a-z])",   "a{1,64}a{1,64}x",
                                 "b?a+[ab]+c+|a", optional + "a{30}x", "[ab]{2,}[a-c]{3,}b|a",
                                 "[a-c]+b?c?x"};
  std::string text(200'000, 'a');
  for (size_t i = 0; i < text.size(); i += 50'000) text[i] = 'b';
  for (const std::string& regex : regexes) {
    const auto begin = std::chrono::steady_clock::now();
    Replaced(regex.c_str(), text);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(seconds.count(), 5) << regex;
  }
}

// Oniguruma has them match U+00DF and ligatures too.
TEST(PatternTest, PairsThatFoldToOneCharacterAreNotSupported) {
  for (const char* regex :
       {"(?i:ss)", "(?i:aST)", "(?i:x|ff)", "(?i:fi)", "(?i:fl)", "(?i:s(?:s))"}) {
    EXPECT_EQ(Pattern::Parse(regex).status().code(), absl::StatusCode::kUnimplemented) << regex;
  }
  for (const char* regex :
       {"ss", "(?i:s|s)", "(?i:sx)s", "(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?i:s)s"}) {
    EXPECT_TRUE(Pattern::Parse(regex).ok()) << regex;
  }
}

// Oniguruma has "ss" match them too, which folds as U+00DF does.
TEST(PatternTest, ClassesInBracketsWithoutCaseAreNotSupported) {
  for (const char* regex : {"(?i:[\\S?])", "(?i:[\\p{L}])", "(?i:[a\\P{N}])", "(?i:[^\\p{L}a])"}) {
    EXPECT_EQ(Pattern::Parse(regex).status().code(), absl::StatusCode::kUnimplemented) << regex;
  }
  for (const char* regex :
       {"[\\S?]", "(?i:\\S)", "(?i:\\p{L})", "(?i:[\\s?])", "(?i:[^a])", "(?i:[s\\.])"}) {
    EXPECT_TRUE(Pattern::Parse(regex).ok()) << regex;
  }
}

TEST(PatternTest, LongCountsAreNotSupported) {
  EXPECT_TRUE(Pattern::Parse("a{64}b").ok());
  EXPECT_TRUE(Pattern::Parse("a{64,}b").ok());
  EXPECT_FALSE(Pattern::Parse("a{65}b").ok());
  EXPECT_FALSE(Pattern::Parse("a{1,65}b").ok());
  EXPECT_FALSE(Pattern::Parse("a{65,}b").ok());
  std::string regex;
  for (int i = 0; i < 16; ++i) regex += "a{64}";
  EXPECT_TRUE(Pattern::Parse(regex).ok());
  EXPECT_FALSE(Pattern::Parse(regex + "b").ok());
}

TEST(CharacterSetTest, ContainsItsRangesInAnyOrder) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    CharacterSet set;
    std::vector<bool> in(400);
    for (size_t range = random() % 12; range > 0; --range) {
      const auto first = static_cast<uint32_t>(random() % 380);
      const auto length = static_cast<uint32_t>(random() % (random() % 2 == 0 ? 3 : 380 - first));
      set.AddRange(first, first + length);
      for (uint32_t c = first; c <= first + length; ++c) in[c] = true;
    }
    if (random() % 3 == 0) {
      set.AddWhitespace();
      for (uint32_t c = 0; c < in.size(); ++c) in[c] = in[c] || IsWhitespace(c);
    }
    if (random() % 2 == 0) {
      set.Invert();
      in.flip();
    }
    set.Seal();
    for (uint32_t c = 0; c < in.size(); ++c) ASSERT_EQ(set.Contains(c), in[c]) << round << " " << c;
  }
}

TEST(CharacterSetTest, ContainsManyRanges) {
  constexpr uint32_t kFirst = 0x100;
  constexpr uint32_t kRanges = 100'000;
  CharacterSet set;
  for (uint32_t i = kRanges; i-- > 0;) set.AddRange(kFirst + 4 * i, kFirst + 4 * i + 1);
  set.Seal();
  for (uint32_t i = 0; i < kRanges; ++i) {
    for (uint32_t at = 0; at < 4; ++at) ASSERT_EQ(set.Contains(kFirst + 4 * i + at), at < 2) << i;
  }
  EXPECT_FALSE(set.Contains(kFirst - 1));
  EXPECT_FALSE(set.Contains(0x10FFFF));
}

std::string Repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(PatternTest, DeepGroupsAreNotSupported) {
  for (const std::string first : {"(?:", "(?i:", "a(?:"}) {
    const auto nested = [&](size_t depth) {
      return first + Repeated("(?:", depth - 1) + "x" + Repeated(")", depth);
    };
    EXPECT_TRUE(Pattern::Parse(nested(Pattern::kMaxGroupDepth)).ok()) << first;
    for (const size_t depth : {Pattern::kMaxGroupDepth + 1, size_t{100'000}}) {
      const absl::Status status = Pattern::Parse(nested(depth)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << first;
      const size_t at = first.size() + 3 * Pattern::kMaxGroupDepth;
      EXPECT_EQ(status.message(), "is not supported from byte " + std::to_string(at) + " on");
    }
  }
  const std::string side_by_side = Repeated("(?:x)", Pattern::kMaxGroupDepth + 1);
  EXPECT_TRUE(Pattern::Parse(side_by_side).ok());
  EXPECT_FALSE(Pattern::Parse(Repeated("(?:", 100'000)).ok());
}

// All 64 sequences of the pattern have a copy of such a set.
TEST(PatternTest, SetsOfManyRangesAreNotSupported) {
  const auto set = [](size_t ranges) {
    std::string characters;
    for (size_t i = 0; i < ranges; ++i) {
      const size_t character = 0x1000 + 2 * i;
      characters += static_cast<char>(0xE0 + (character >> 12));
      characters += static_cast<char>(0x80 + (character >> 6) % 64);
      characters += static_cast<char>(0x80 + character % 64);
    }
    return "[" + characters + "]";
  };
  EXPECT_TRUE(Pattern::Parse(set(1024)).ok());
  EXPECT_FALSE(Pattern::Parse(set(1025)).ok());
  EXPECT_FALSE(Pattern::Parse("(?:a|b)(?:a|b)" + set(1025) + "+").ok());
  EXPECT_TRUE(Pattern::Parse("[" + Repeated("\\P{L}", 1025) + "]").ok());
}

TEST(CharacterClassTest, IsTheCategoryAndWhetherItIsWhitespace) {
  for (const char32_t c : {U'a', U'7', U' ', U'\n', U'\u3000', U'\u4E2D', U'\u00B2', U'\uFFFF',
                           U'\U0001F600', U'\U00010000', U'\U0010FFFF'}) {
    const uint32_t whitespace = IsWhitespace(c) ? kWhitespaceClass : 0;
    EXPECT_EQ(CharacterClass(c), MajorCategory(c) | whitespace) << static_cast<uint32_t>(c);
  }
}

}  // namespace
}  // namespace attendant
