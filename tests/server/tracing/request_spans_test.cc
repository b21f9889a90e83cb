// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/request_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const absl::Time kWall = absl::FromUnixMillis(1'792'000'000'000);
const absl::Time kSteady = absl::FromUnixMillis(5'000);

absl::Duration Ms(int64_t milliseconds) { return absl::Milliseconds(milliseconds); }

// Tokenized in 2 ms after 1 ms, queued for 4, computed from 8 to 18 ms, serialized from 20 to 21.
RequestTrace Answered() {
  RequestTrace request;
  request.trace_high = 1;
  request.trace_low = 2;
  request.span = 3;
  request.parent = 4;
  request.state = "a=1";
  request.start = kWall;
  request.arrival = kSteady;
  request.total = Ms(22);
  request.method = "attendant.v1.Encoder/Encode";
  request.peer = "ipv4:10.0.0.7:40312";
  request.key = "search";
  request.request_id = "r";
  request.message_id = "m";
  request.model = "minilm";
  request.sequences = 2;
  request.tokens = 30;
  request.request_bytes = 31;
  request.response_bytes = 1583;
  request.tokenize = Ms(2);
  request.submitted = Ms(3);
  request.queue = Ms(4);
  request.compute = Ms(10);
  request.answering = Ms(20);
  request.serialize = Ms(1);
  request.batches.push_back({.id = 77,
                             .told = true,
                             .worker = 1,
                             .tokens = 128,
                             .sequences = 9,
                             .requests = 5,
                             .start = kSteady + Ms(8),
                             .compute = Ms(10)});
  return request;
}

// "name [start, end]" in milliseconds since arrival.
std::vector<std::string> Times(const std::vector<OtlpSpan>& spans) {
  std::vector<std::string> times;
  for (const OtlpSpan& span : spans) {
    times.push_back(absl::StrCat(span.name, " ", absl::ToInt64Milliseconds(span.start - kWall), "-",
                                 absl::ToInt64Milliseconds(span.end - kWall)));
  }
  return times;
}

std::map<std::string, std::string> Texts(const OtlpSpan& span) {
  std::map<std::string, std::string> texts;
  for (const SpanAttribute& attribute : span.attributes) {
    const auto* number = std::get_if<int64_t>(&attribute.value);
    const bool added =
        texts
            .emplace(attribute.name, number != nullptr ? absl::StrCat(*number)
                                                       : std::get<std::string>(attribute.value))
            .second;
    EXPECT_TRUE(added) << attribute.name << " twice";
  }
  return texts;
}

using TextMap = std::map<std::string, std::string>;

TEST(RequestSpansTest, ARequestAndItsPhases) {
  const RequestTrace request = Answered();
  const std::vector<OtlpSpan> spans = MakeSpans(request);
  EXPECT_THAT(Times(spans),
              ElementsAre("attendant.v1.Encoder/Encode 0-22", "tokenize 1-3", "queue 3-7",
                          "compute 8-18", "serialize 20-21", "batch 8-18"));
  EXPECT_EQ(spans.size(), NumSpans(request));
  EXPECT_EQ(spans[0].ids, (SpanIds{1, 2, 3}));
  EXPECT_EQ(spans[0].parent, 4u);
  EXPECT_EQ(spans[0].state, "a=1");
  EXPECT_EQ(spans[0].kind, SpanKind::kServer);
  EXPECT_EQ(spans[0].error, "");
  std::set<uint64_t> ids = {3};
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(spans[i].ids.trace_high, 1u);
    EXPECT_EQ(spans[i].ids.trace_low, 2u);
    EXPECT_EQ(spans[i].parent, 3u) << spans[i].name;
    EXPECT_EQ(spans[i].kind, SpanKind::kInternal);
    EXPECT_NE(spans[i].ids.span, 0u);
    EXPECT_TRUE(ids.insert(spans[i].ids.span).second) << "an id twice";
  }
}

TEST(RequestSpansTest, Attributes) {
  EXPECT_EQ(Texts(MakeSpans(Answered())[0]), (TextMap{{"rpc.system", "grpc"},
                                                      {"rpc.service", "attendant.v1.Encoder"},
                                                      {"rpc.method", "Encode"},
                                                      {"rpc.grpc.status_code", "0"},
                                                      {"client.address", "10.0.0.7"},
                                                      {"client.port", "40312"},
                                                      {"attendant.request_id", "r"},
                                                      {"attendant.api_key", "search"},
                                                      {"attendant.model", "minilm"},
                                                      {"attendant.message_id", "m"},
                                                      {"attendant.request_bytes", "31"},
                                                      {"attendant.response_bytes", "1583"},
                                                      {"attendant.sequences", "2"},
                                                      {"attendant.tokens", "30"}}));
}

TEST(RequestSpansTest, OfHttp) {
  RequestTrace request = Answered();
  request.method = "POST /v2/models/{model}/infer";
  TextMap texts = Texts(MakeSpans(request)[0]);
  EXPECT_EQ(texts["http.request.method"], "POST");
  EXPECT_EQ(texts["http.route"], "/v2/models/{model}/infer");
  EXPECT_FALSE(texts.contains("rpc.system"));
}

TEST(RequestSpansTest, PeersOfAllKinds) {
  const std::map<std::string, std::string> addresses = {{"ipv4:10.0.0.7:1", "10.0.0.7 1"},
                                                        {"ipv6:%5B::1%5D:2", "::1 2"},
                                                        {"ipv6:[fe80::1]:3", "fe80::1 3"},
                                                        {"unix:/run/a", "unix:/run/a "},
                                                        {"", " "}};
  for (const auto& [peer, expected] : addresses) {
    RequestTrace request = Answered();
    request.peer = peer;
    TextMap texts = Texts(MakeSpans(request)[0]);
    EXPECT_EQ(texts["client.address"] + " " + texts["client.port"], expected);
  }
}

TEST(RequestSpansTest, LinksToItsBatches) {
  RequestTrace request = Answered();
  request.batches.push_back({.id = 78, .start = kSteady + Ms(12), .compute = Ms(7)});
  const std::vector<OtlpSpan> spans = MakeSpans(request);
  EXPECT_THAT(spans[0].links, ElementsAre(BatchIds(77), BatchIds(78)));
  EXPECT_EQ(Times(spans)[3], "compute 8-19") << "from its first batch to its last";
  ASSERT_EQ(spans.size(), 6u) << "another request tells of the second";
  EXPECT_EQ(spans.size(), NumSpans(request));
  const OtlpSpan& batch = spans.back();
  EXPECT_EQ(batch.ids, BatchIds(77));
  EXPECT_EQ(batch.parent, 0u);
  EXPECT_EQ(Texts(batch), (TextMap{{"attendant.model", "minilm"},
                                   {"attendant.replica", "1"},
                                   {"attendant.batch.tokens", "128"},
                                   {"attendant.batch.sequences", "9"},
                                   {"attendant.batch.requests", "5"}}));
}

TEST(RequestSpansTest, NoTwoBatchesHaveTheSameIds) {
  std::set<uint64_t> traces, spans;
  for (uint64_t id = 1000; id < 2000; ++id) {
    const SpanIds ids = BatchIds(id);
    EXPECT_EQ(ids, BatchIds(id));
    EXPECT_TRUE(traces.insert(ids.trace_high ^ ids.trace_low).second);
    EXPECT_TRUE(spans.insert(ids.span).second);
  }
}

TEST(RequestSpansTest, AnErrorIsTheServersOrTheClients) {
  const std::map<absl::StatusCode, bool> codes = {
      {absl::StatusCode::kInternal, true},         {absl::StatusCode::kUnavailable, true},
      {absl::StatusCode::kDeadlineExceeded, true}, {absl::StatusCode::kUnimplemented, true},
      {absl::StatusCode::kUnknown, true},          {absl::StatusCode::kDataLoss, true},
      {absl::StatusCode::kInvalidArgument, false}, {absl::StatusCode::kResourceExhausted, false},
      {absl::StatusCode::kCancelled, false}};
  for (const auto& [code, is_error] : codes) {
    RequestTrace request = Answered();
    request.code = code;
    const std::string name = absl::StatusCodeToString(code);
    const std::vector<OtlpSpan> spans = MakeSpans(request);
    EXPECT_EQ(spans[0].error, is_error ? name : "");
    TextMap texts = Texts(spans[0]);
    EXPECT_EQ(texts["error.type"], name);
    EXPECT_EQ(texts["rpc.grpc.status_code"], absl::StrCat(static_cast<int>(code)));
    EXPECT_FALSE(texts.contains("attendant.tokens"));
  }
}

TEST(RequestSpansTest, OnlyPhasesThatWere) {
  RequestTrace refused = Answered();
  refused.code = absl::StatusCode::kResourceExhausted;
  refused.batches.clear();
  EXPECT_THAT(Times(MakeSpans(refused)),
              ElementsAre("attendant.v1.Encoder/Encode 0-22", "tokenize 1-3"));
  EXPECT_EQ(NumSpans(refused), 2u);
  refused.submitted = absl::ZeroDuration();
  EXPECT_THAT(Times(MakeSpans(refused)), ElementsAre("attendant.v1.Encoder/Encode 0-22"));
  EXPECT_EQ(NumSpans(refused), 1u);
  RequestTrace tokenized = Answered();
  tokenized.compute = absl::ZeroDuration();
  tokenized.batches.clear();
  EXPECT_THAT(Times(MakeSpans(tokenized)),
              ElementsAre("attendant.v1.Encoder/Encode 0-22", "tokenize 1-3", "serialize 20-21"));
  EXPECT_EQ(NumSpans(tokenized), 3u);
}

TEST(RequestSpansTest, AStreamAndItsMessages) {
  RequestTrace message = Answered();
  message.kind = RequestTrace::Kind::kMessage;
  const OtlpSpan own = MakeSpans(message)[0];
  EXPECT_EQ(own.name, "message");
  EXPECT_EQ(own.kind, SpanKind::kInternal);
  EXPECT_EQ(Texts(own)["rpc.method"], "Encode");
  EXPECT_EQ(Texts(own)["rpc.grpc.status_code"], "0");
  RequestTrace stream;
  stream.kind = RequestTrace::Kind::kStream;
  stream.span = 3;
  stream.method = "attendant.v1.Encoder/EncodeStream";
  const std::vector<OtlpSpan> spans = MakeSpans(stream);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].name, "attendant.v1.Encoder/EncodeStream");
  EXPECT_EQ(spans[0].kind, SpanKind::kServer);
  EXPECT_THAT(spans[0].links, IsEmpty());
  EXPECT_EQ(Texts(spans[0]), (TextMap{{"rpc.system", "grpc"},
                                      {"rpc.service", "attendant.v1.Encoder"},
                                      {"rpc.method", "EncodeStream"}}));
}

}  // namespace
}  // namespace attendant
