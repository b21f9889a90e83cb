// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/otlp_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace attendant {
namespace {

using nlohmann::json;

OtlpSpan FullSpan() {
  OtlpSpan span{.ids = {0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7}};
  span.parent = 0x1;
  span.state = "a=1";
  span.name = "Encode";
  span.kind = SpanKind::kServer;
  span.start = absl::FromUnixNanos(1'792'000'000'000'000'001);
  span.end = absl::FromUnixNanos(1'792'000'000'000'000'900);
  span.attributes = {{"attendant.model", "minilm"}, {"attendant.tokens", int64_t{1} << 53}};
  span.links = {{1, 2, 3}};
  span.error = "INTERNAL";
  return span;
}

TEST(OtlpJsonTest, HasTheFormOfOtlp) {
  const json parsed = json::parse(ToOtlpJson({{"service.name", "x"}}, "1.2.3", {{FullSpan()}}));
  const json expected = json::parse(R"({"resourceSpans":[{
      "resource":{"attributes":[{"key":"service.name","value":{"stringValue":"x"}}]},
      "scopeSpans":[{"scope":{"name":"attendant","version":"1.2.3"},"spans":[{
        "traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7",
        "parentSpanId":"0000000000000001","traceState":"a=1","name":"Encode","kind":2,
        "startTimeUnixNano":"1792000000000000001","endTimeUnixNano":"1792000000000000900",
        "attributes":[{"key":"attendant.model","value":{"stringValue":"minilm"}},
                      {"key":"attendant.tokens","value":{"intValue":"9007199254740992"}}],
        "links":[{"traceId":"00000000000000010000000000000002","spanId":"0000000000000003"}],
        "status":{"code":2,"message":"INTERNAL"}}]}]}]})");
  EXPECT_EQ(parsed, expected);
}

TEST(OtlpJsonTest, LeavesOutWhatThereIsNot) {
  const std::vector<OtlpSpan> spans(3, OtlpSpan{.ids = {1, 2, 3}});
  const json parsed = json::parse(ToOtlpJson({}, "", spans));
  const json& list = parsed["resourceSpans"][0]["scopeSpans"][0]["spans"];
  ASSERT_EQ(list.size(), 3u);
  for (const char* name : {"parentSpanId", "traceState", "links", "status"}) {
    EXPECT_FALSE(list[0].contains(name)) << name;
  }
  EXPECT_EQ(list[0]["kind"], 1);
}

TEST(OtlpJsonTest, AnyTextBecomesUtf8) {
  OtlpSpan span = FullSpan();
  span.name = "a\xff\x01\"b";
  const std::string text = ToOtlpJson({}, "", {{span}});
  for (const char c : text) EXPECT_TRUE(c >= ' ' && c <= '~');
  const json parsed = json::parse(text);
  EXPECT_EQ(parsed["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"],
            "a\xef\xbf\xbd\x01\"b");
}

TEST(OtlpAnswerTest, ReadsPartialSuccess) {
  const OtlpAnswer text =
      ReadOtlpAnswer(R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}})");
  EXPECT_EQ(text.rejected_spans, 3);
  EXPECT_EQ(text.message, "too old");
  EXPECT_EQ(ReadOtlpAnswer(R"({"partialSuccess":{"rejectedSpans":4}})").rejected_spans, 4);
}

TEST(OtlpAnswerTest, AnythingElseRejectsNothing) {
  for (const char* body :
       {"", "{}", "[]", "null", "<html>", "{\"partialSuccess\":1}", "{\"partialSuccess\":{}}",
        "{\"partialSuccess\":{\"rejectedSpans\":\"x\",\"errorMessage\":7}}",
        "{\"partialSuccess\":{\"rejectedSpans\":-4}}",
        "{\"partialSuccess\":{\"rejectedSpans\":\"-4\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":18446744073709551615}}"}) {
    EXPECT_EQ(ReadOtlpAnswer(body).rejected_spans, 0) << body;
    EXPECT_EQ(ReadOtlpAnswer(body).message, "") << body;
  }
}

}  // namespace
}  // namespace attendant
