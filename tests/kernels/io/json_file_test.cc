// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Error(const std::string& text, const JsonLimits& limits = {}) {
  return ParseJson(text, "some.json", limits).status().ToString();
}

JsonNode Parse(const std::string& text) { return ParseJson(text, "some.json").value(); }

TEST(JsonFile, ReadsEveryType) {
  const JsonNode json =
      Parse(R"({"b": true, "i": -7, "n": 2.5, "s": "\u00e4", "a": [1, "x"], "o": {"k": null}})");
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  EXPECT_TRUE(json.Require("b", boolean).ok());
  EXPECT_TRUE(json.Require("i", integer).ok());
  EXPECT_TRUE(json.Require("n", number).ok());
  EXPECT_TRUE(json.Require("s", text).ok());
  EXPECT_TRUE(boolean);
  EXPECT_EQ(integer, -7);
  EXPECT_EQ(number, 2.5);
  EXPECT_EQ(text, "ä");
  EXPECT_TRUE(json.Require("i", number).ok());
  EXPECT_EQ(number, -7);
  const std::vector<JsonNode> elements = json.Field("a").value().Elements().value();
  ASSERT_EQ(elements.size(), 2u);
  EXPECT_TRUE(elements[1].Get(text).ok());
  EXPECT_EQ(text, "x");
  EXPECT_THAT(json.FieldNames().value(), ElementsAre("a", "b", "i", "n", "o", "s"));
}

TEST(JsonFile, AbsentAndNullFieldsKeepTheDefault) {
  const JsonNode json = Parse(R"({"null": null})");
  int64_t value = 42;
  EXPECT_TRUE(json.Read("missing", value).ok());
  EXPECT_TRUE(json.Read("null", value).ok());
  EXPECT_EQ(value, 42);
  EXPECT_FALSE(json.Has("null"));
  EXPECT_TRUE(json.IsNull("null"));
  EXPECT_FALSE(json.IsNull("missing"));
  EXPECT_EQ(json.Require("null", value).ToString(),
            "INVALID_ARGUMENT: some.json lacks the field `null`");
}

TEST(JsonFile, WrongTypesNameThePlace) {
  const JsonNode json = Parse(R"({"f": 3.0, "big": 9223372036854775808, "a": [{"x": "1"}]})");
  int64_t value = 42;
  EXPECT_EQ(json.Read("f", value).ToString(),
            "INVALID_ARGUMENT: some.json: `f` is a number, expected an integer of 64 bits");
  EXPECT_FALSE(json.Read("big", value).ok());
  EXPECT_FALSE(json.Read("a", value).ok());
  EXPECT_EQ(json.Field("a")->Elements().value()[0].Read("x", value).ToString(),
            "INVALID_ARGUMENT: some.json: `a`[0].`x` is a string, expected an integer of 64 bits");
  EXPECT_FALSE(json.Elements().ok());
  EXPECT_EQ(value, 42);
  EXPECT_FALSE(Parse("[1]").Read("x", value).ok());
  EXPECT_FALSE(Parse("7").FieldNames().ok());
}

TEST(JsonFile, RefusesWhatIsNotJson) {
  for (const char* text : {"",           " ",
                           "{",          "{\"a\":}",
                           "{\"a\":1,}", "[1 2]",
                           "NaN",        "{\"a\": NaN}",
                           "[Infinity]", "[-Infinity]",
                           "[1e999]",    "{} {}",
                           "// c\n{}",   "{'a': 1}",
                           "[01]",       "[\"\xff\"]",
                           "[\"\xc3\"]", "[\"\\ud800\"]",
                           "[\"\n\"]",   "nul"}) {
    EXPECT_THAT(Error(text), HasSubstr("some.json: not valid JSON at byte")) << text;
  }
  EXPECT_THAT(Error(std::string("{\"a\": 1}\0x", 10)), HasSubstr("not valid JSON"));
}

TEST(JsonFile, RefusesAFieldTwice) {
  EXPECT_THAT(Error(R"({"a": 1, "b": 2, "a": 1})"), HasSubstr("field `a` occurs twice"));
  EXPECT_THAT(Error(R"([{"x": {"a": 1, "\u0061": 2}}])"), HasSubstr("field `a` occurs twice"));
}

TEST(JsonFile, DepthHasALimit) {
  const JsonLimits limits = {.max_depth = 3};
  EXPECT_TRUE(ParseJson("[[[]]]", "some.json", limits).ok());
  EXPECT_THAT(Error("[[[[]]]]", limits), HasSubstr("nested deeper than the limit of 3"));
  EXPECT_THAT(Error(std::string(10'000'000, '[')), HasSubstr("nested deeper than the limit of 32"));
}

TEST(JsonFile, ValuesAndBytesHaveALimit) {
  const JsonLimits limits = {.max_bytes = 20, .max_values = 4};
  EXPECT_TRUE(ParseJson("[1, 2, 3]", "some.json", limits).ok());
  EXPECT_THAT(Error("[1, 2, 3, 4]", limits), HasSubstr("more values than the limit of 4"));
  EXPECT_THAT(Error("[1,                  2]", limits),
              HasSubstr("has 23 bytes of JSON, the limit is 20"));
}

TEST(JsonFile, ErrorsStayShort) {
  const std::string long_name(1'000'000, 'x');
  EXPECT_LT(Error(absl::StrCat("{\"", long_name, "\": 1, \"", long_name, "\": 2}")).size(), 300u);
  EXPECT_LT(Error(absl::StrCat("[\"", long_name)).size(), 300u);
}

TEST(JsonFile, FilesThatAreNone) {
  const TempDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(ReadJsonFile(directory / "none.json").status()));
  EXPECT_THAT(ReadJsonFile(directory.path()).status().ToString(),
              HasSubstr("is not a regular file"));
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(ReadJsonFile(directory / "pipe").status().ToString(),
              HasSubstr("is not a regular file"));
  EXPECT_THAT(ReadJsonFile("/dev/zero").status().ToString(), HasSubstr("is not a regular file"));
}

TEST(JsonFile, FilesHaveALimit) {
  const TempDirectory directory;
  WriteFile(directory / "some.json", "[1, 2, 3]");
  EXPECT_TRUE(ReadJsonFile(directory / "some.json", {.max_bytes = 9}).ok());
  EXPECT_THAT(ReadJsonFile(directory / "some.json", {.max_bytes = 8}).status().ToString(),
              HasSubstr("some.json has 9 bytes, the limit is 8"));
}

}  // namespace
}  // namespace attendant
