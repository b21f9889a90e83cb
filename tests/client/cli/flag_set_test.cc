// SPDX-License-Identifier: Apache-2.0
#include "client/cli/flag_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FlagSetTest : public ::testing::Test {
 protected:
  FlagSetTest() {
    flags_.Add("count", &count_, "N", "How many");
    flags_.Add("timeout", &timeout_, "DURATION", "How long");
    flags_.Add("name", &name_, "NAME", "Whose");
    flags_.AddSwitch("json", &json_, "As JSON");
    flags_.AddRepeated("ids", &ids_, "IDS", "Ids");
    flags_.AddChoice<int>("size", &size_, {{"small", 1}, {"large", 2}}, "Which size");
  }

  std::string Error(const std::vector<std::string>& args) {
    return std::string(flags_.Parse(args, &positional_).message());
  }

  FlagSet flags_;
  std::vector<std::string> positional_;
  int count_ = 3;
  absl::Duration timeout_ = absl::Seconds(30);
  std::string name_;
  bool json_ = false;
  std::vector<std::string> ids_;
  int size_ = 0;
};

TEST_F(FlagSetTest, ReadsBothSpellings) {
  EXPECT_EQ(Error({"--count=7", "--timeout", "1m30s", "--name=a=b", "--json", "--size", "large"}),
            "");
  EXPECT_EQ(count_, 7);
  EXPECT_EQ(timeout_, absl::Seconds(90));
  EXPECT_EQ(name_, "a=b");
  EXPECT_TRUE(json_);
  EXPECT_EQ(size_, 2);
}

TEST_F(FlagSetTest, KeepsDefaults) {
  EXPECT_EQ(Error({}), "");
  EXPECT_EQ(count_, 3);
}

TEST_F(FlagSetTest, RepeatedFlagsAddUp) {
  EXPECT_EQ(Error({"--ids", "1,2", "--ids=3"}), "");
  EXPECT_THAT(ids_, ElementsAre("1,2", "3"));
}

TEST_F(FlagSetTest, KeepsPositionalArgumentsByteForByte) {
  EXPECT_EQ(Error({"[SEP]", "-", "--json", "", "a,b", "--", "--json=x", "-5"}), "");
  EXPECT_THAT(positional_, ElementsAre("[SEP]", "-", "", "a,b", "--json=x", "-5"));
}

TEST_F(FlagSetTest, SwitchesCanBeSwitchedOff) {
  EXPECT_EQ(Error({"--json", "--json=false"}), "");
  EXPECT_FALSE(json_);
}

TEST_F(FlagSetTest, NamesWhatIsWrong) {
  EXPECT_THAT(Error({"--cuont=7"}), HasSubstr("unknown flag --cuont"));
  EXPECT_THAT(Error({"-5"}), HasSubstr("unknown flag -5"));
  EXPECT_THAT(Error({"--count"}), HasSubstr("--count needs a value: N"));
  EXPECT_THAT(Error({"--count", "many"}), HasSubstr("--count: cannot read 'many' as N"));
  EXPECT_THAT(Error({"--timeout=30"}), HasSubstr("--timeout: cannot read '30' as DURATION"));
  EXPECT_THAT(Error({"--size=huge"}), HasSubstr("must be one of small|large"));
}

TEST_F(FlagSetTest, HelpNamesEveryFlagWithItsDefault) {
  const std::string help = flags_.Help();
  EXPECT_THAT(help, HasSubstr("  --count N                 How many (default 3)\n"));
  EXPECT_THAT(help, HasSubstr("How long (default 30s)\n"));
  EXPECT_THAT(help, HasSubstr("  --size small|large        Which size\n"));
  EXPECT_THAT(help, HasSubstr("  --json                    As JSON\n"));
  EXPECT_THAT(help, HasSubstr("Whose\n"));
}

TEST_F(FlagSetTest, HelpBreaksLongLines) {
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
}  // namespace attendant::client
