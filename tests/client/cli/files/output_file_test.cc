// SPDX-License-Identifier: Apache-2.0
#include "client/cli/files/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tests/support/checkpoint.h"

namespace attendant::client {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  static std::string Contents(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const TempDirectory directory_;
  const std::string path_ = directory_ / "out";
};

TEST_F(OutputFileTest, TakesThePlaceOfWhatTheFileHeld) {
  ASSERT_TRUE(WriteFile(path_, "a long first text").ok());
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  const absl::string_view parts[] = {"second", " text"};
  ASSERT_TRUE(WriteFile(path_, parts).ok());
  EXPECT_EQ(Contents(path_), "second text");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms{0640});
  EXPECT_THAT(Names(), testing::ElementsAre("out"));
}

// The system ends a write at the limit of a file's size as on a full disk.
TEST_F(OutputFileTest, AnErrorLeavesTheFileAsItWas) {
  ASSERT_TRUE(WriteFile(path_, "first").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFile(path_, std::string(100'000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("out: File too large"));
  EXPECT_EQ(Contents(path_), "first");
  EXPECT_THAT(Names(), testing::ElementsAre("out"));
}

TEST_F(OutputFileTest, LinksStay) {
  ASSERT_TRUE(WriteFile(directory_ / "real", "first").ok());
  fs::create_symlink("real", path_);
  fs::create_symlink("later", directory_ / "dangling");
  ASSERT_TRUE(WriteFile(path_, "second").ok());
  ASSERT_TRUE(WriteFile(directory_ / "dangling", "third").ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(Contents(directory_ / "real"), "second");
  EXPECT_EQ(Contents(directory_ / "later"), "third");
  fs::create_hard_link(directory_ / "real", directory_ / "other name");
  ASSERT_TRUE(WriteFile(directory_ / "real", "fourth").ok());
  EXPECT_EQ(Contents(directory_ / "other name"), "fourth");
}

TEST_F(OutputFileTest, WhatIsNoFileIsWrittenInPlace) {
  EXPECT_TRUE(WriteFile("/dev/null", "text").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_FALSE(WriteFile(directory_.path(), "text").ok());
  EXPECT_FALSE(WriteFile(directory_ / "none/out", "text").ok());
}

}  // namespace
}  // namespace attendant::client
