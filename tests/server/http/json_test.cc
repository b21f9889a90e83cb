// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "server/http/json/json_view.h"
#include "server/http/json/json_writer.h"

namespace attendant {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = JsonView::Kind;

TEST(JsonTextTest, ReadsEachKind) {
  const absl::StatusOr<JsonText> text = JsonText::Parse(
      R"({"n":null,"b":true,"i":-9223372036854775808,"u":18446744073709551615,"d":1.5,
          "s":"a\u00e9\n","a":[1,[2],"x"],"o":{}})");
  ASSERT_TRUE(text.ok()) << text.status();
  const JsonView root = text->root();
  EXPECT_EQ(root.kind(), Kind::kObject);
  EXPECT_FALSE(root.Find("n").has_value()) << "null counts as absent";
  EXPECT_FALSE(root.Find("nothing").has_value());
  EXPECT_TRUE(root.Find("b")->Bool());
  EXPECT_EQ(root.Find("i")->Integer(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(root.Find("u")->kind(), Kind::kNumber) << "no 64-bit integer";
  EXPECT_EQ(root.Find("d")->kind(), Kind::kNumber);
  EXPECT_EQ(root.Find("s")->String(), "a\xC3\xA9\n");
  EXPECT_EQ(root.Find("a")->size(), 3u);
  EXPECT_EQ(root.Find("o")->kind(), Kind::kObject);
  EXPECT_FALSE(root.Find("a")->Find("x").has_value());
}

TEST(JsonTextTest, FieldsHaveTypes) {
  const JsonText text = *JsonText::Parse(R"({"s":"x","i":3,"d":3.0,"b":false})");
  std::string string;
  int64_t integer = 7;
  std::optional<bool> boolean;
  EXPECT_TRUE(text.root().Read("s", string).ok());
  EXPECT_TRUE(text.root().Read("nothing", integer).ok());
  EXPECT_EQ(integer, 7);
  EXPECT_TRUE(text.root().Read("nothing", boolean).ok());
  EXPECT_FALSE(boolean.has_value());
  EXPECT_TRUE(text.root().Read("b", boolean).ok());
  EXPECT_EQ(boolean, false);
  EXPECT_EQ(text.root().Read("i", string).message(), "i must be a string, not an integer");
  EXPECT_EQ(text.root().Read("d", integer).message(), "d must be an integer, not a number");
  EXPECT_EQ(text.root().Read("s", boolean).message(), "s must be a boolean, not a string");
}

// A client's own field may hold one, as of a hash.
TEST(JsonTextTest, IntegersBeyond64BitsAreNumbers) {
  const absl::StatusOr<JsonText> text = JsonText::Parse(
      R"({"a":123456789012345678901234567890,"b":[-9223372036854775809,18446744073709551616],)"
      R"("s":"\"123456789012345678901234567890\\","i":9223372036854775807,"n":-5,)"
      R"("f":0.123456789012345678901234567890,"e":123456789012345678901234567890e2})");
  ASSERT_TRUE(text.ok()) << text.status();
  const JsonView root = text->root();
  EXPECT_DOUBLE_EQ(root.Find("a")->Number(), 123456789012345678901234567890.0);
  std::vector<double> values;
  EXPECT_TRUE(root.Find("b")
                  ->ForEach([&](JsonView value) {
                    values.push_back(value.Number());
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(values,
              ElementsAre(DoubleEq(-9223372036854775809.0), DoubleEq(18446744073709551616.0)));
  EXPECT_EQ(root.Find("s")->String(), "\"123456789012345678901234567890\\");
  EXPECT_EQ(root.Find("i")->Integer(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(root.Find("n")->Integer(), -5);
  EXPECT_DOUBLE_EQ(root.Find("f")->Number(), 0.12345678901234568);
  EXPECT_DOUBLE_EQ(root.Find("e")->Number(), 1.2345678901234568e31);
  int64_t integer = 0;
  EXPECT_EQ(root.Read("a", integer).message(), "a must be an integer, not a number");
}

TEST(JsonTextTest, AnIntegerBeyond64BitsMakesNothingElseValid) {
  const std::string digits(30, '1');
  for (const std::string& text : {"[" + digits + "x]", "[0" + digits + "]", "[" + digits + ",]",
                                  "[+" + digits + "]", "[\"" + digits, "[--" + digits + "]",
                                  "[" + digits + ".]", "[" + std::string(400, '1') + "]"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(JsonText::Parse(text).status())) << text;
  }
}

TEST(JsonTextTest, TheLastFieldOfANameCounts) {
  const JsonText text = *JsonText::Parse(
      R"({"model":"a","other":0,"mod\u0065l":"b","gone":1,"gone":null,"back":null,"back":{"x":1}})");
  EXPECT_EQ(text.root().Find("model")->String(), "b");
  EXPECT_FALSE(text.root().Find("gone").has_value());
  EXPECT_EQ(text.root().Find("back")->Find("x")->Integer(), 1);
}

TEST(JsonTextTest, RefusesWhatIsNotJson) {
  for (const std::string& text :
       {std::string(), std::string(" "), std::string("{"), std::string("{}x"), std::string("[1,]"),
        std::string("{\"a\":01}"), std::string("{'a':1}"), std::string("\"\xff\""),
        std::string("[1e999]"), std::string("[nan]"), std::string("\0", 1),
        std::string("\"\\u12\""), std::string("[") + std::string(1 << 16, ' '),
        std::string(1 << 20, '[')}) {
    const absl::Status status = JsonText::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text.substr(0, 20);
  }
}

TEST(JsonTextTest, DepthHasALimit) {
  const auto nested = [](int64_t depth) {
    const auto count = static_cast<size_t>(depth);
    return std::string(count, '[') + std::string(count, ']');
  };
  EXPECT_TRUE(JsonText::Parse(nested(JsonText::kMaxDepth - 1)).ok());
  EXPECT_THAT(std::string(JsonText::Parse(nested(JsonText::kMaxDepth + 1)).status().message()),
              HasSubstr("levels deep"));
}

TEST(JsonTextTest, MemoryFollowsWhatTheTextHolds) {
  const std::string text = "\"" + std::string(1'000'000, 'x') + "\"";
  EXPECT_LT(JsonText::MemoryBytes(text), 2'010'000);
  std::string ids = "[5";
  for (int i = 1; i < 500'000; ++i) ids += ",5";
  EXPECT_GE(JsonText::MemoryBytes(ids), 500'000 * (2 * 4 + 16 + 8)) << "index, tape, copy";
  EXPECT_LE(JsonText::MemoryBytes(ids), JsonText::MostMemoryBytes(1'000'000));
}

std::string Written(float value) {
  std::string json;
  AppendJsonFloat(value, json);
  return json;
}

TEST(JsonWriterTest, FloatsAreShortAndReadBackAsTheSame) {
  EXPECT_EQ(Written(0.1f), "0.1");
  EXPECT_EQ(Written(1.0f), "1");
  EXPECT_EQ(Written(std::nanf("")), "null");
  EXPECT_EQ(Written(-INFINITY), "null");
  std::mt19937 random(1);
  size_t longest = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    const std::string text = Written(value);
    longest = std::max(longest, text.size());
    // As clients read it: to a double, and then to f32.
    EXPECT_EQ(static_cast<float>(std::stod(text)), value) << text;
  }
  EXPECT_LT(longest, static_cast<size_t>(kJsonFloatBytes)) << "with its comma";
}

TEST(JsonWriterTest, Arrays) {
  std::string json;
  AppendJsonFloats(std::vector<float>{}, json);
  AppendJsonFloats(std::vector<float>{1, -0.5f}, json);
  AppendJsonIntegers(std::vector<int64_t>{-1, 2}, json);
  EXPECT_EQ(json, "[][1,-0.5][-1,2]");
}

TEST(JsonWriterTest, StringsAreEscapedAndAlwaysUtf8) {
  std::string json;
  AppendJsonString(std::string("a\"\\\n\t\x01\xC3\xA9\xff z\xE2\x82", 12), json);
  EXPECT_EQ(json, "\"a\\\"\\\\\\n\\t\\u0001\xC3\xA9\xEF\xBF\xBD z\xEF\xBF\xBD\"");
  EXPECT_TRUE(JsonText::Parse(json).ok());
}

TEST(JsonWriterTest, TheBytesOfAString) {
  for (const std::string& text : {std::string(), std::string("a\"\\\n\r\t\x01\x1f\x7f\xC3\xA9")}) {
    std::string json;
    AppendJsonString(text, json);
    EXPECT_EQ(JsonStringBytes(text), static_cast<int64_t>(json.size())) << json;
  }
  const std::string wrong = "\xC3\xA9\xff z\xE2\x82";
  std::string json;
  AppendJsonString(wrong, json);
  EXPECT_GE(JsonStringBytes(wrong), static_cast<int64_t>(json.size()));
  EXPECT_EQ(JsonStringBytes(std::vector<std::string>{"a", "\n"}), 3 + 4);
}

}  // namespace
}  // namespace attendant
