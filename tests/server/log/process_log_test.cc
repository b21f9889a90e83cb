// SPDX-License-Identifier: Apache-2.0
#include "server/log/process_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;

// What `log` writes to standard error, line by line.
template <typename Log>
std::vector<std::string> Lines(const std::string& format, const std::string& level, Log log) {
  testing::internal::CaptureStderr();
  ConfigureLog(format, level);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as grpc_init does
  log();
  spdlog::default_logger()->flush();
  std::istringstream text(testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(ProcessLogTest, TextHasTimeLevelAndMessage) {
  const auto lines = Lines("text", "info", [] {
    spdlog::info("ready");
    spdlog::debug("not asked for");
  });
  ASSERT_THAT(lines, ElementsAre(EndsWith(" info  ready")));
  EXPECT_EQ(lines[0][4], '-') << lines[0];
}

TEST(ProcessLogTest, JsonIsAnObjectALineWhateverTheMessage) {
  const auto lines = Lines("json", "info", [] {
    spdlog::warn("a\"b\\c\n\x01 \xC3\xA9 \xFF");
    gpr_log(GPR_ERROR, "a \"peer\" failed");
  });
  ASSERT_THAT(lines, SizeIs(2));
  const auto first = nlohmann::json::parse(lines[0]), second = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(first["message"], "a\"b\\c\n\x01 \xC3\xA9 \xEF\xBF\xBD");
  EXPECT_EQ(first["level"], "warning");
  EXPECT_EQ(first["time"].get<std::string>().size(),
            std::string("2026-01-01T00:00:00.000+00:00").size());
  EXPECT_THAT(second["message"].get<std::string>(),
              HasSubstr("gRPC: a \"peer\" failed (process_log_test.cc:"));
}

TEST(ProcessLogTest, LinesThatClientsCauseAreFew) {
  const auto lines = Lines("text", "info", [] {
    for (int i = 0; i < 200; ++i) gpr_log(GPR_ERROR, "handshake failed");
    for (int i = 0; i < 200; ++i) GOOGLE_LOG(ERROR) << "not UTF-8";
    spdlog::error("our own");
  });
  EXPECT_THAT(lines, SizeIs(61));
  EXPECT_THAT(lines.back(), HasSubstr("our own"));
}

// gRPC quotes headers of clients.
TEST(ProcessLogTest, AMessageOfALibraryIsOneShortLine) {
  const auto lines = Lines("text", "debug", [] {
    gpr_log(GPR_ERROR, "%s", "te: x\n2026-11-25 09:00:00.000 error a model\x1b[2J \xC3\xA9");
    gpr_log(GPR_ERROR, "%s", std::string(100'000, 'x').c_str());
    GOOGLE_LOG(ERROR) << "not\nUTF-8 " << std::string(100'000, 'x');
  });
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines[0],
              HasSubstr("te: x\\n2026-11-25 09:00:00.000 error a model\\x1b[2J \xC3\xA9 ("));
  EXPECT_THAT(lines[1], SizeIs(Lt(700u)));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("not\\nUTF-8"), SizeIs(Lt(700u))));
}

TEST(ProcessLogTest, WhatEndsTheProcessIsAlwaysThere) {
  const auto lines = Lines("text", "critical", [] {
    for (int i = 0; i < 200; ++i) gpr_log(GPR_ERROR, "handshake failed");
    gpr_log(GPR_ERROR, "assertion failed: %s", "x > 0");
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("gRPC: assertion failed: x > 0 (process_log_test.cc:"));
}

}  // namespace
}  // namespace attendant
