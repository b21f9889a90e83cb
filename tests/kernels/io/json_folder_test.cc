// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/json_folder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

int64_t ValueIn(const absl::StatusOr<JsonNode>& document) {
  int64_t value = -1;
  const absl::Status read = document.ok() ? document->Read("value", value) : document.status();
  EXPECT_TRUE(read.ok()) << read;
  return value;
}

TEST(JsonFolder, TheFirstAnswerHoldsForItsCopiesAndTheFoldersInside) {
  const TempDirectory directory;
  std::filesystem::create_directory(directory / "inner");
  WriteFile(directory / "inner/config.json", R"({"value": 1})");
  const JsonFolder folder(directory.path());
  EXPECT_EQ(ValueIn(folder.At("inner").Read("config.json")), 1);
  WriteFile(directory / "inner/config.json", R"({"value": 2})");
  const JsonFolder copy = folder;
  EXPECT_EQ(ValueIn(copy.At("").At("inner").Read("config.json")), 1);
  EXPECT_EQ(ValueIn(copy.Read("inner/config.json")), 1);
  EXPECT_EQ(ValueIn(JsonFolder(directory / "inner").Read("config.json")), 2);
}

TEST(JsonFolder, AFileThatIsNotThereStaysSo) {
  const TempDirectory directory;
  const JsonFolder folder(directory.path());
  EXPECT_TRUE(absl::IsNotFound(folder.Read("modules.json").status()));
  WriteFile(directory / "modules.json", R"({"value": 1})");
  EXPECT_TRUE(absl::IsNotFound(folder.Read("modules.json").status()));
  const absl::StatusOr<std::optional<JsonNode>> found = folder.Find("modules.json");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->has_value());
  const absl::StatusOr<JsonNode> empty = folder.ReadOrEmpty("modules.json");
  EXPECT_EQ(ValueIn(empty), -1);
  EXPECT_TRUE(empty->IsObject());
  EXPECT_EQ(empty->where(), directory / "modules.json");
}

TEST(JsonFolder, AFileThatIsNotValidIsAnErrorForAll) {
  const TempDirectory directory;
  WriteFile(directory / "config.json", "{");
  const JsonFolder folder(directory.path());
  const absl::Status status = folder.Read("config.json").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  WriteFile(directory / "config.json", "{}");
  EXPECT_EQ(folder.Find("config.json").status(), status);
  EXPECT_EQ(folder.ReadOrEmpty("config.json").status(), status);
}

TEST(JsonFolder, FindsWhatIsThere) {
  const TempDirectory directory;
  WriteFile(directory / "config.json", R"({"value": 3})");
  const JsonFolder folder(directory.path());
  const absl::StatusOr<std::optional<JsonNode>> found = folder.Find("config.json");
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  EXPECT_EQ(ValueIn(**found), 3);
  EXPECT_EQ(ValueIn(folder.ReadOrEmpty("config.json")), 3);
}

}  // namespace
}  // namespace attendant
