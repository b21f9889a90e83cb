// SPDX-License-Identifier: Apache-2.0
#include "server/app/model_log.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"

namespace attendant {
namespace {

// The line that is logged, from its level on.
std::string Logged(const ModelStatus& status, ModelNews news) {
  testing::internal::CaptureStdout();
  LogModel(status, news);
  const std::string line = testing::internal::GetCapturedStdout();
  const size_t level = line.rfind('[');
  return level == std::string::npos ? line : line.substr(level);
}

ModelStatus StatusOf(ModelState state) {
  ModelStatus status;
  status.name = "m";
  status.state = state;
  return status;
}

TEST(ModelLogTest, ALoadThatFailedSaysWhatServes) {
  ModelStatus status = StatusOf(ModelState::kFailed);
  status.error = absl::UnknownError("why");
  EXPECT_EQ(Logged(status, ModelNews::kState), "[error] model 'm' version 1 failed to load: why\n");
  for (const ModelState serves : {ModelState::kReady, ModelState::kIdleFailed}) {
    status.state = serves;
    EXPECT_EQ(Logged(status, ModelNews::kState),
              "[error] model 'm' version 1 was not loaded anew: why\n");
  }
}

TEST(ModelLogTest, AModelForWhichMemoryIsShortStaysIdle) {
  ModelStatus status = StatusOf(ModelState::kIdle);
  status.error = absl::ResourceExhaustedError("why");
  EXPECT_EQ(Logged(status, ModelNews::kState),
            "[warning] model 'm' version 1 was not loaded again, and stays idle: why\n");
}

TEST(ModelLogTest, AStallIsLoggedWhateverTheLastLoadWas) {
  for (const absl::Status& error : {absl::OkStatus(), absl::UnknownError("why")}) {
    ModelStatus status = StatusOf(ModelState::kReady);
    status.error = error;
    status.stalled_workers = 2;
    EXPECT_EQ(Logged(status, ModelNews::kStall),
              "[error] model 'm' version 1 has stalled: 2 workers do not end their batches\n");
    status.stalled_workers = 0;
    EXPECT_EQ(Logged(status, ModelNews::kStall),
              "[info] model 'm' version 1 ends its batches again\n");
  }
}

TEST(ModelLogTest, AStateThatNeedsNoReasonIsOneLine) {
  EXPECT_EQ(Logged(StatusOf(ModelState::kIdle), ModelNews::kState),
            "[info] model 'm' version 1 is unloaded for want of requests\n");
}

}  // namespace
}  // namespace attendant
