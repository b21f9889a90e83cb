// SPDX-License-Identifier: Apache-2.0
#include "server/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(MemoryFileTest, ReadersOfThePathSeeTheLastText) {
  absl::StatusOr<MemoryFile> file = MemoryFile::Create();
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string path = file->path();
  EXPECT_EQ(Read(path), "");
  std::ifstream before(path);
  for (const std::string& text : {std::string(100'000, 'a'), std::string("b"), std::string()}) {
    ASSERT_TRUE(file->Replace(text).ok());
    EXPECT_EQ(file->path(), path);
    EXPECT_EQ(Read(path), text);
  }
  std::ostringstream old;
  old << before.rdbuf();
  EXPECT_EQ(old.str(), "") << "a file that is open changes";
}

// Files that fit are in tests/integration/test_tls.py.
TEST(TlsFilesTest, RefusesWhatIsNoCertificate) {
  const TempDirectory folder;
  const std::string cert = folder.path() + "/cert.pem", key = folder.path() + "/key.pem";
  const auto load = [&] { return TlsFiles::Load({cert, key, ""}).status(); };
  EXPECT_EQ(load().code(), absl::StatusCode::kNotFound);
  for (const char* text : {"", "broken"}) {
    std::ofstream(cert) << text;
    std::ofstream(key) << "broken";
    EXPECT_EQ(load().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(load().message()), HasSubstr(cert));
  }
}

}  // namespace
}  // namespace attendant
