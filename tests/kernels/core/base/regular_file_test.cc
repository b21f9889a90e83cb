// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/regular_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace attendant
