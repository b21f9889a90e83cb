// SPDX-License-Identifier: Apache-2.0
#include "client/flags/flag_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FlagParserTest : public ::testing::Test {
 protected:
  FlagParserTest() {
    flags_.Add("count", &count_, "N", "How many");
    flags_.Add("timeout", &timeout_, "DURATION", "How long");
    flags_.Add("name", &name_, "NAME", "Whose");
    flags_.AddNumber("share", &share_, "X", {0, 1}, "Which part");
    flags_.AddSwitch("json", &json_, "As JSON");
    flags_.AddRepeated("ids", &ids_, "IDS", "Ids");
    flags_.AddChoice<int>("size", &size_, {{"small", 1}, {"large", 2}}, "Which size");
  }

  std::string Error(const std::vector<std::string>& args) {
    const absl::StatusOr<std::vector<std::string>> arguments = flags_.Parse(args);
    if (arguments.ok()) positional_ = *arguments;
    return std::string(arguments.status().message());
  }

  FlagParser flags_;
  std::vector<std::string> positional_;
  int count_ = 3;
  absl::Duration timeout_ = absl::Seconds(30);
  std::string name_;
  double share_ = 0.5;
  bool json_ = false;
  std::vector<std::string> ids_;
  int size_ = 1;
};

TEST_F(FlagParserTest, ReadsBothSpellings) {
  EXPECT_EQ(Error({"--count=7", "--timeout", "1m30s", "--name=a=b", "--json", "--size", "large"}),
            "");
  EXPECT_EQ(count_, 7);
  EXPECT_EQ(timeout_, absl::Seconds(90));
  EXPECT_EQ(name_, "a=b");
  EXPECT_TRUE(json_);
  EXPECT_EQ(size_, 2);
}

TEST_F(FlagParserTest, KeepsDefaults) {
  EXPECT_EQ(Error({}), "");
  EXPECT_EQ(count_, 3);
}

TEST_F(FlagParserTest, RepeatedFlagsAddUp) {
  EXPECT_EQ(Error({"--ids", "1,2", "--ids=3"}), "");
  EXPECT_THAT(ids_, ElementsAre("1,2", "3"));
}

TEST_F(FlagParserTest, KeepsPositionalArgumentsByteForByte) {
  EXPECT_EQ(Error({"[SEP]", "-", "--json", "", "a,b", "--", "--json=x", "-5", "--"}), "");
  EXPECT_THAT(positional_, ElementsAre("[SEP]", "-", "", "a,b", "--json=x", "-5", "--"));
}

// What CLI11 alone would read in another way.
TEST_F(FlagParserTest, ReadsValuesAsTheyStand) {
  EXPECT_EQ(Error({"--name=[a,b]", "--ids", "[1,2]", "--count", "-7", "word"}), "");
  EXPECT_EQ(name_, "[a,b]");
  EXPECT_THAT(ids_, ElementsAre("[1,2]"));
  EXPECT_EQ(count_, -7);
  EXPECT_THAT(positional_, ElementsAre("word"));
  EXPECT_EQ(Error({"--count=010", "--name=", "--json"}), "");
  EXPECT_EQ(count_, 10);
  EXPECT_EQ(name_, "");
  EXPECT_TRUE(json_);
  EXPECT_EQ(Error({"--name", "--json", "--", "--name="}), "");
  EXPECT_EQ(name_, "--json");
  EXPECT_THAT(positional_, ElementsAre("--name="));
}

TEST_F(FlagParserTest, TheLastUseWins) {
  EXPECT_EQ(Error({"--count=1", "--size=large", "--count=2", "--size=small"}), "");
  EXPECT_EQ(count_, 2);
  EXPECT_EQ(size_, 1);
}

TEST_F(FlagParserTest, SwitchesCountThoughAnotherFlagIsWrong) {
  EXPECT_THAT(Error({"--count=many", "--json"}), HasSubstr("--count"));
  EXPECT_TRUE(json_);
}

TEST_F(FlagParserTest, SwitchesCanBeSwitchedOff) {
  EXPECT_EQ(Error({"--json", "--json=false"}), "");
  EXPECT_FALSE(json_);
}

TEST_F(FlagParserTest, NamesWhatIsWrong) {
  EXPECT_THAT(Error({"--cuont=7"}), HasSubstr("no flag --cuont"));
  EXPECT_THAT(Error({"-5"}), HasSubstr("no flag -5"));
  EXPECT_THAT(Error({"--count"}), HasSubstr("--count needs a value: N"));
  EXPECT_THAT(Error({"--count", "many"}),
              HasSubstr("--count cannot be 'many': it must be a whole number"));
  EXPECT_THAT(Error({"--timeout=30"}),
              HasSubstr("--timeout cannot be '30': it must be a duration"));
  EXPECT_THAT(Error({"--size=huge"}), HasSubstr("cannot be 'huge': it is one of small, large"));
  EXPECT_THAT(Error({"--json=maybe"}), HasSubstr("--json cannot be 'maybe'"));
  EXPECT_THAT(Error({"---json"}), HasSubstr("no flag ---json"));
  for (const char* share : {"-0.1", "1.1", "nan"}) {
    EXPECT_THAT(Error({"--share", share}), HasSubstr(": it must be from 0 to 1")) << share;
  }
}

TEST_F(FlagParserTest, HelpNamesEveryFlagWithItsDefault) {
  const std::string help = flags_.Help();
  EXPECT_THAT(help, HasSubstr("  --count N                 How many (default 3)\n"));
  EXPECT_THAT(help, HasSubstr("How long (default 30s)\n"));
  EXPECT_THAT(help,
              HasSubstr("  --share X                 Which part (from 0 to 1, default 0.5)\n"));
  EXPECT_THAT(help, HasSubstr("  --size small|large        Which size (default small)\n"));
  EXPECT_THAT(help, HasSubstr("  --json                    As JSON\n"));
  EXPECT_THAT(help, HasSubstr("Whose\n"));
}

TEST_F(FlagParserTest, MarkdownHasATableForEachSection) {
  flags_.Section("More");
  flags_.Add("other", &name_, "A|B", "One of two");
  const std::string page = flags_.Markdown("##");
  EXPECT_THAT(page,
              HasSubstr("\n## Flags\n\n| flag | default | range | meaning |\n|---|---|---|---|\n"
                        "| `--count N` | `3` |  | How many |\n"));
  EXPECT_THAT(page, HasSubstr("| `--size small\\|large` | `small` |  | Which size |\n"));
  EXPECT_THAT(page, HasSubstr("| `--share X` | `0.5` | from 0 to 1 | Which part |\n"));
  EXPECT_THAT(page, HasSubstr("| `--json` |  |  | As JSON |\n"));
  EXPECT_THAT(page,
              HasSubstr("\n## More\n\n| flag | default | range | meaning |\n|---|---|---|---|\n"
                        "| `--other A\\|B` |  |  | One of two |\n"));
}

TEST_F(FlagParserTest, TheEndsOfARangeAreInIt) {
  for (const char* value : {"0", "1"}) EXPECT_EQ(Error({"--share", value}), "");
  for (const char* value : {"-0.001", "1.001"}) {
    EXPECT_THAT(Error({"--share", value}), HasSubstr("it must be from 0 to 1"));
  }
}

TEST_F(FlagParserTest, ATimeoutIsAboveZero) {
  absl::Duration limit = absl::Seconds(1);
  flags_.AddTimeout("limit", &limit, "How long at most");
  EXPECT_EQ(Error({"--limit=1ns"}), "");
  EXPECT_EQ(limit, absl::Nanoseconds(1));
  EXPECT_EQ(Error({"--limit=inf"}), "");
  EXPECT_EQ(limit, absl::InfiniteDuration());
  for (const char* value : {"0", "-1ns", "-inf"}) {
    EXPECT_THAT(Error({absl::StrCat("--limit=", value)}), HasSubstr(": it must be above 0"));
  }
  EXPECT_THAT(flags_.Help(), HasSubstr("How long at most (above 0, default 1s)\n"));
}

TEST_F(FlagParserTest, HelpFillsALineOf100Columns) {
  const std::string word(72, 'x');  // beside the indentation
  flags_.Add("other", &name_, "NAME", "one " + word.substr(4) + " " + word + " two");
  flags_.Add("more", &name_, "NAME", "one " + word.substr(3) + " two");
  const std::string help = flags_.Help();
  EXPECT_THAT(help, HasSubstr(" one " + word.substr(4) + "\n"));
  EXPECT_THAT(help, HasSubstr(" " + word + "\n"));
  EXPECT_THAT(help, HasSubstr(" one\n"));
}

TEST_F(FlagParserTest, HelpBreaksLongLines) {
  std::string words = "long";
  for (int i = 0; i < 40; ++i) words += " words";
  flags_.Add("other", &name_, "NAME", words);
  size_t start = 0;
  const std::string help = flags_.Help();
  for (size_t end; (end = help.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(end - start, 100);
  }
}

}  // namespace
}  // namespace attendant
