// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/report_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "client/load/results/hdr_log.h"
#include "client/load/results/page.h"
#include "client/load/results/request_log.h"

namespace attendant::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// 100 requests a second for twenty seconds, of 1 to 100 ms each.
LoadResult Result() {
  LoadResult result;
  result.description = {.protocol = "attendant.v1",
                        .server = "host:1",
                        .model = "</script>",
                        .payload = "one text",
                        .plan = {.requests_per_s = 100, .duration = absl::Seconds(20)}};
  result.start = absl::FromUnixSeconds(1700000000);
  result.summary.window = absl::Seconds(20);
  result.summary.ok = 2000;
  result.summary.not_sent = 7;
  result.summary.response.p99 = absl::Microseconds(12345);
  for (int64_t i = 0; i < 2000; ++i) {
    const int64_t ns = (i % 100 + 1) * 1000000;
    Interval& interval = result.detail.series.At(absl::Milliseconds(10 * i));
    ++interval.offered;
    ++interval.finished;
    interval.response_ns.Record(ns);
    result.detail.response_ns.Record(ns);
    result.detail.service_ns.Record(ns / 2);
  }
  return result;
}

TEST(ReportJsonTest, HasSecondsAndNulls) {
  const nlohmann::ordered_json json = ReportToJson(Result());
  EXPECT_EQ(json["loop"], "open");
  EXPECT_EQ(json["requests"]["not_sent"], 7);
  EXPECT_DOUBLE_EQ(json["latency_s"]["p99"].get<double>(), 0.012345);
  EXPECT_TRUE(json["tokens_per_s"].is_null());
  EXPECT_TRUE(json["server_mean_s"].is_null());
  EXPECT_TRUE(json["client"]["bottleneck"].is_null());
}

TEST(ReportJsonTest, HasTheCourseAndTheDistribution) {
  const nlohmann::ordered_json json = ReportToJson(Result());
  ASSERT_EQ(json["intervals"].size(), 20);
  EXPECT_EQ(json["intervals"][3]["start"], 3.0);
  EXPECT_EQ(json["intervals"][3]["finished"], 100);
  EXPECT_NEAR(json["intervals"][3]["p50"].get<double>(), 0.05, 1e-4);
  EXPECT_EQ(json["batches"]["requests_per_s"].size(), 10);
  EXPECT_NEAR(json["confidence_95"]["p50"]["value"].get<double>(), 0.05, 1e-4);
  double percent = -1, seconds = 0;
  for (const auto& point : json["distribution"]["response"]) {
    EXPECT_GT(point[0].get<double>(), percent);
    EXPECT_GE(point[1].get<double>(), seconds);
    percent = point[0].get<double>();
    seconds = point[1].get<double>();
  }
  EXPECT_EQ(percent, 100);
  EXPECT_EQ(seconds, 0.1);
  int64_t requests = 0;
  for (const auto& bin : json["bins"]["service"]) requests += bin[2].get<int64_t>();
  EXPECT_EQ(requests, 2000);
}

TEST(PageTest, HoldsTheDataAndNothingThatEndsItsScript) {
  const std::string page = MakePage({Result()}, "a sentence");
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("\"a sentence\""));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  for (const char* mark : {"/*STYLE*/", "/*SCRIPT*/", "/*DATA*/", "src=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(mark)));
  }
}

// The bytes of an encoded histogram, without base64 and zlib.
std::string Decode(const std::string& text) {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(text, &bytes));
  EXPECT_EQ(bytes.substr(0, 4), "\x1c\x84\x93\x14");
  std::string out(1 << 20, '\0');
  uLongf size = out.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                       reinterpret_cast<const Bytef*>(bytes.data() + 8), bytes.size() - 8),
            Z_OK);
  out.resize(size);
  return out;
}

TEST(HdrLogTest, AHistogramIsEncodedAsTheFormatSays) {
  Histogram histogram;
  for (int i = 0; i < 10000; ++i) histogram.Record(3);
  histogram.Record(3000);  // bucket 2048 + 476
  const std::string bytes = Decode(EncodeHdr(histogram));
  const std::string head(
      "\x1c\x84\x93\x13\0\0\0\7\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\1\0\0\xff\xff\xff\xff\xff\xff"
      "\x3f\xf0\0\0\0\0\0\0",
      40);
  EXPECT_EQ(bytes.substr(0, 40), head);
  // Three empty buckets (-3), 10000 values, 2520 empty buckets, one value; as ZigZag LEB128.
  EXPECT_EQ(bytes.substr(40), std::string("\5\xa0\x9c\1\xaf\x27\2", 7));
}

TEST(HdrLogTest, ALogHasALineForEachIntervalAndOneForServiceTimes) {
  std::ostringstream out;
  const LoadResult result = Result();
  WriteHdrLog(result.start, result.detail, result.summary.window, out);
  const std::vector<std::string> lines = absl::StrSplit(out.str(), '\n');
  ASSERT_EQ(lines.size(), 4 + 20 + 1 + 1);
  EXPECT_THAT(lines[2], StartsWith("#[StartTime: 1700000000.000 (seconds since epoch)"));
  EXPECT_THAT(lines[5], StartsWith("1.000,1.000,100.000,HISTFAAA"));
  EXPECT_THAT(lines[24], StartsWith("Tag=service,0.000,20.000,50.000,HISTFAAA"));
}

TEST(RequestLogTest, WritesOneLineForEachCall) {
  std::ostringstream out;
  RequestLog log(out, absl::FromUnixSeconds(1000), absl::Seconds(1));
  log.Add({.intended = absl::Milliseconds(500),
           .sent = absl::Milliseconds(600),
           .finished = absl::Milliseconds(900)},
          {.tokens = 12});
  log.Add({.intended = absl::Seconds(1), .sent = absl::Seconds(1), .finished = absl::Seconds(2)},
          {.code = grpc::StatusCode::INTERNAL, .message = "broken\nline"});
  EXPECT_EQ(out.str(), "");
  log.Flush();
  const std::vector<std::string> lines = absl::StrSplit(out.str(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2);
  const auto first = nlohmann::json::parse(lines[0]), second = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(first["metadata"]["benchmark_phase"], "warmup");
  EXPECT_EQ(first["metadata"]["request_start_ns"], 1000600000000);
  EXPECT_EQ(first["metrics"]["request_latency"]["value"], 300.0);
  EXPECT_EQ(first["metrics"]["response_time"]["value"], 400.0);
  EXPECT_EQ(first["metrics"]["input_sequence_length"]["value"], 12);
  EXPECT_EQ(second["metadata"]["session_num"], 1);
  EXPECT_EQ(second["metadata"]["benchmark_phase"], "profiling");
  EXPECT_EQ(second["error"]["code"], "INTERNAL");
  EXPECT_EQ(second["error"]["message"], "broken\nline");
}

}  // namespace
}  // namespace attendant::client
