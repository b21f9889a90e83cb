// SPDX-License-Identifier: Apache-2.0
#include "server/access/access_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "tests/server/metrics/exposition.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

AccessRecord Record(const std::string& model) {
  return {.method = "attendant.v1.Encoder/Encode", .model = model};
}

TEST(AccessRecordTest, IsOneLineOfJson) {
  AccessRecord record = Record("minilm");
  record.time = absl::UnixEpoch() + absl::Microseconds(1'500'000);
  record.request_id = "r";
  record.trace_id = "t";
  record.span_id = "s";
  record.peer = "ipv4:127.0.0.1:5";
  record.key = "search";
  record.message_id = "m";
  record.code = absl::StatusCode::kResourceExhausted;
  record.sequences = 2;
  record.tokens = 30;
  record.request_bytes = 400;
  record.response_bytes = 5000;
  record.total = absl::Microseconds(1234);
  record.queue = absl::Nanoseconds(1'500);
  EXPECT_EQ(ToJsonLine(record),
            R"({"time":"1970-01-01T00:00:01.500000Z","request_id":"r","trace_id":"t",)"
            R"("span_id":"s","peer":"ipv4:127.0.0.1:5","key":"search",)"
            R"("method":"attendant.v1.Encoder/Encode","model":"minilm","id":"m",)"
            R"("code":"RESOURCE_EXHAUSTED","sequences":2,"tokens":30,"bytes_in":400,)"
            R"("bytes_out":5000,"ms":{"total":1.234,"tokenize":0.0,"queue":0.002,"compute":0.0,)"
            R"("serialize":0.0}})"
            "\n");
}

// Lines are written when the services, which own the names of their methods, may be gone.
TEST(AccessRecordTest, OwnsTheNameOfItsMethod) {
  std::string name = "attendant.v1.Encoder/Encode";
  const AccessRecord record{.method = name};
  name.assign(name.size(), 'x');
  EXPECT_THAT(ToJsonLine(record), HasSubstr("attendant.v1.Encoder/Encode"));
}

TEST(AccessRecordTest, EscapesWhatClientsChoose) {
  AccessRecord record = Record("a\"\n\\\x1b\xe2\x80\xae\xff");
  const std::string line = ToJsonLine(record);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  for (const char c : line.substr(0, line.size() - 1)) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << c;
  EXPECT_EQ(nlohmann::json::parse(line)["model"], "a\"\n\\\x1b\xe2\x80\xae\xef\xbf\xbd");
}

TEST(AccessRecordTest, TheLongestLineFitsAPipe) {
  AccessRecord record = Record(std::string(kMaxLoggedModelBytes, '\x01'));
  record.message_id = std::string(256, '\xff');
  record.request_id = std::string(256, '"');
  record.key = std::string(64, 'k');
  record.trace_id = std::string(32, 'f');
  record.span_id = std::string(16, 'f');
  record.peer = std::string(64, ':');
  record.code = absl::StatusCode::kUnauthenticated;
  for (int64_t* number :
       {&record.sequences, &record.tokens, &record.request_bytes, &record.response_bytes}) {
    *number = INT64_MIN;
  }
  for (absl::Duration* phase :
       {&record.total, &record.tokenize, &record.queue, &record.compute, &record.serialize}) {
    *phase = absl::Microseconds(123456789012345);
  }
  EXPECT_LE(ToJsonLine(record).size(), 4096u);
}

class AccessLogTest : public testing::Test {
 protected:
  std::unique_ptr<AccessLog> Open(const AccessLog::Options& options = {}) {
    absl::StatusOr<LogFile> file = LogFile::Open(path_);
    EXPECT_TRUE(file.ok()) << file.status();
    return std::make_unique<AccessLog>(*std::move(file), options, metrics_);
  }
  double Counted(const std::string& result) {
    const auto scrape = Exposition::Parse(metrics_.Scrape());
    return scrape->Value("attendant_access_log_lines_total", {{"result", result}});
  }

  ServerMetrics metrics_{"1.2.3"};
  TempDirectory directory_;
  const std::string path_ = directory_ / "access.log";
};

TEST_F(AccessLogTest, WritesLinesInOrder) {
  {
    const auto log = Open();
    for (int i = 0; i < 100; ++i) log->Add(Record(absl::StrCat("m", i)));
  }
  const std::vector<std::string> lines = Lines(path_);
  ASSERT_EQ(lines.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(nlohmann::json::parse(lines[static_cast<size_t>(i)])["model"], absl::StrCat("m", i));
  }
  EXPECT_EQ(Counted("written"), 100);
}

TEST_F(AccessLogTest, AppendsToAFileThatIsThere) {
  WriteFile(path_, "before\n");
  Open()->Add(Record("after"));
  ASSERT_EQ(Lines(path_).size(), 2u);
  EXPECT_EQ(Lines(path_)[0], "before");
}

TEST_F(AccessLogTest, FlushWaitsForTheFile) {
  const auto log = Open();
  log->Add(Record("m"));
  log->Flush(absl::Seconds(30));
  EXPECT_EQ(Lines(path_).size(), 1u);
}

// As logrotate does. The file is looked for once a second.
TEST_F(AccessLogTest, ARenamedFileIsMadeAnew) {
  const auto log = Open();
  log->Add(Record("m"));
  log->Flush(absl::Seconds(30));
  ASSERT_EQ(std::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (access(path_.c_str(), F_OK) != 0 && absl::Now() < end) {
    log->Add(Record("n"));
    log->Flush(absl::Seconds(30));
  }
  EXPECT_GE(Lines(path_).size(), 1u);
  EXPECT_GE(Lines(path_ + ".1").size(), 1u);
  EXPECT_EQ(Counted("failed"), 0);
}

TEST_F(AccessLogTest, LinesASecondAreBounded) {
  constexpr int kLines = 100'000;
  const absl::Time start = absl::Now();
  {
    const auto log = Open({.max_lines_per_s = 10});
    for (int i = 0; i < kLines; ++i) log->Add(Record("m"));
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  EXPECT_GE(Counted("written"), 10);
  EXPECT_LE(Counted("written"), 10 * (seconds + 2));
  EXPECT_EQ(Counted("written") + Counted("limited"), kLines);
}

TEST_F(AccessLogTest, ErrorsAreAlwaysInTheSample) {
  const auto none = Open({.sample = 0});
  EXPECT_FALSE(none->Wants(absl::StatusCode::kOk));
  EXPECT_TRUE(none->Wants(absl::StatusCode::kInternal));
  EXPECT_TRUE(Open()->Wants(absl::StatusCode::kOk));
  const auto some = Open({.sample = 0.25});
  int wanted = 0;
  for (int i = 0; i < 10'000; ++i) wanted += some->Wants(absl::StatusCode::kOk) ? 1 : 0;
  EXPECT_NEAR(wanted, 2500, 300);
}

// A pipe whose reader is stuck: nobody waits, the queue stays bounded, and the end comes.
TEST_F(AccessLogTest, AStuckReaderCostsLinesAndNothingElse) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_GE(fcntl(reader, F_SETPIPE_SZ, 4096), 0);  // about 20 lines
  constexpr int kLines = 3000;
  {
    const auto log = Open({.max_lines_per_s = kLines, .max_queued = 100});
    for (int i = 0; i < kLines; ++i) log->Add(Record("m"));
    log->Flush(absl::Milliseconds(10));
  }
  EXPECT_GT(Counted("dropped"), 0);
  EXPECT_GT(Counted("failed"), 0);
  EXPECT_GT(Counted("written"), 0);
  EXPECT_EQ(Counted("written") + Counted("dropped") + Counted("failed"), kLines);
  close(reader);
}

TEST_F(AccessLogTest, AFullDiskIsCountedAndTold) {
  const std::string full = "/dev/full";
  if (access(full.c_str(), W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  absl::StatusOr<LogFile> file = LogFile::Open(full);
  ASSERT_TRUE(file.ok()) << file.status();
  int told = 0;
  {
    AccessLog log(*std::move(file), {.on_failure = [&told] { ++told; }}, metrics_);
    for (int i = 0; i < 3; ++i) log.Add(Record("m"));
  }
  EXPECT_EQ(Counted("failed"), 3);
  EXPECT_EQ(told, 1) << "once a minute";
}

TEST_F(AccessLogTest, AFileThatCannotBeIsAnError) {
  for (const std::string& path : {directory_ / "none/log", directory_.path()}) {
    const absl::Status status = LogFile::Open(path).status();
    EXPECT_FALSE(status.ok()) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

}  // namespace
}  // namespace attendant
