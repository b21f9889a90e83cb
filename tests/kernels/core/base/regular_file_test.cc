// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/regular_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(RegularFileTest, TextHasALimit) {
  const TempDirectory directory;
  WriteFile(directory / "some.txt", "123456789");
  EXPECT_EQ(ReadTextFile(directory / "some.txt", 9).value(), "123456789");
  EXPECT_THAT(ReadTextFile(directory / "some.txt", 8).status().ToString(),
              HasSubstr("some.txt has 9 bytes, the limit is 8"));
}

TEST(RegularFileTest, TextComesFromRegularFilesOnly) {
  EXPECT_TRUE(absl::IsNotFound(ReadTextFile("/nonexistent/file", 9).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadTextFile("/dev/zero", 9).status()));
}

TEST(RegularFileTest, LinksInACircleAreAFaultOfTheFolder) {
  const TempDirectory directory;
  std::filesystem::create_symlink("b", directory / "a");
  std::filesystem::create_symlink("a", directory / "b");
  const absl::Status status = ReadTextFile(directory / "a", 9).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("/a: the links lead in a circle"));
}

TEST(RegularFileTest, OnlyAFileThatIsNotThereIsAbsent) {
  const TempDirectory directory;
  WriteFile(directory / "some.txt", "1");
  std::filesystem::create_symlink("circle", directory / "circle");
  EXPECT_TRUE(IsFile(directory / "some.txt").value());
  EXPECT_FALSE(IsFile(directory / "none").value());
  EXPECT_FALSE(IsFile(directory / "some.txt/none").value());
  EXPECT_FALSE(IsFile(directory.path()).value());
  EXPECT_TRUE(absl::IsInvalidArgument(IsFile(directory / "circle").status()));
}

TEST(RegularFileTest, OnlyAFileThatIsNotThereIsNotFound) {
  const auto code_of = [](int error) { return FileError(error, "open", "a").code(); };
  EXPECT_EQ(code_of(ENOENT), absl::StatusCode::kNotFound);
  EXPECT_EQ(code_of(EACCES), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code_of(ENXIO), absl::StatusCode::kInvalidArgument) << "a socket";
  EXPECT_EQ(code_of(ENOMEM), absl::StatusCode::kResourceExhausted);
  for (const int error : {EIO, EMFILE, ENFILE, ESTALE, ENOTCONN, ENOMEDIUM, ETIMEDOUT}) {
    EXPECT_EQ(code_of(error), absl::StatusCode::kUnavailable) << error;
  }
}

TEST(RegularFileTest, WhatMayBeOverSoonIsUnavailable) {
  const TempDirectory directory;
  WriteFile(directory / "some.txt", "123456789");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status refused = ReadTextFile(directory / "some.txt", 9).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(refused.ToString(), HasSubstr("/some.txt: Too many open files"));
  EXPECT_TRUE(ReadTextFile(directory / "some.txt", 9).ok());
}

}  // namespace
}  // namespace attendant
