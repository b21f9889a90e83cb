// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const auto kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() { WriteFile(path_, std::string(3 * kPage, 'x')); }

  void Shorten(size_t bytes) { std::filesystem::resize_file(path_, bytes); }

  const TempDirectory directory_;
  const std::string path_ = directory_ / "weights";
};

size_t Count(std::span<const std::byte> bytes, char value) {
  return static_cast<size_t>(std::count(bytes.begin(), bytes.end(), static_cast<std::byte>(value)));
}

TEST_F(MappedFileTest, StaysWhenItsFileIsReplaced) {
  const MappedReads reads;
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  WriteFile(directory_ / "new", "new");
  std::filesystem::rename(directory_ / "new", path_);
  EXPECT_EQ(Count(file->bytes(), 'x'), file->bytes().size());
  EXPECT_TRUE(reads.Check(absl::OkStatus()).ok());
  std::filesystem::remove(path_);
  EXPECT_TRUE(reads.Check(absl::OkStatus()).ok());
}

TEST_F(MappedFileTest, PagesThatAreGoneAreZerosAndCounted) {
  MappedFile opened = MappedFile::Open(path_).value();
  const MappedFile file = std::move(opened);
  const MappedReads reads;
  Shorten(kPage + 1);
  EXPECT_EQ(Count(file.bytes().subspan(0, kPage), 'x'), kPage);
  EXPECT_TRUE(reads.Check(absl::OkStatus()).ok()) << "the first page is there";
  EXPECT_EQ(Count(file.bytes().subspan(2 * kPage), '\0'), kPage);
  const absl::Status status = reads.Check(absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("could not be read from its disk"));
  EXPECT_TRUE(absl::IsUnavailable(reads.Check(absl::InternalError("zeros are no header"))));
  EXPECT_TRUE(absl::IsInternal(MappedReads().Check(absl::InternalError("other")))) << "later";
}

TEST_F(MappedFileTest, AFileThatIsWrittenInPlaceIsNotReadWell) {
  const auto ends_with = [this](const std::string& words) {
    return AllOf(HasSubstr(path_), HasSubstr(words));
  };
  const MappedReads cut;
  const MappedFile file = MappedFile::Open(path_).value();
  const auto time = std::filesystem::last_write_time(path_);
  Shorten(3 * kPage - 1);
  std::filesystem::last_write_time(path_, time);
  EXPECT_EQ(Count(file.bytes(), 'x'), file.bytes().size() - 1) << "the system fills the page";
  EXPECT_THAT(cut.Check(absl::OkStatus()).ToString(), ends_with(" changed while it was read"));
  const MappedReads written;
  EXPECT_TRUE(written.Check(absl::OkStatus()).ok()) << "it maps nothing";
  const MappedFile again = MappedFile::Open(path_).value();
  std::filesystem::last_write_time(path_, time + std::chrono::nanoseconds(1));
  EXPECT_THAT(written.Check(absl::OkStatus()).ToString(), ends_with(" changed while it was read"));
  EXPECT_TRUE(absl::IsUnavailable(written.Check(absl::InternalError("half a header"))));
}

TEST_F(MappedFileTest, OtherBusErrorsEndTheProcess) {
  const MappedFile file = MappedFile::Open(path_).value();
  const int descriptor = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  void* const foreign = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  ASSERT_NE(foreign, MAP_FAILED);
  Shorten(0);
  EXPECT_DEATH(*static_cast<const volatile char*>(foreign), "");
  EXPECT_DEATH(raise(SIGBUS), "");
  munmap(foreign, kPage);
}

TEST_F(MappedFileTest, AFileTooManyIsRefused) {
  std::vector<MappedFile> files;
  absl::Status refused;
  while (refused.ok() && files.size() < 5000) {
    absl::StatusOr<MappedFile> file = MappedFile::Open(path_);
    refused = file.status();
    if (file.ok()) files.push_back(*std::move(file));
  }
  EXPECT_EQ(files.size(), 4096u);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  files.pop_back();
  EXPECT_TRUE(MappedFile::Open(path_).ok());
}

}  // namespace
}  // namespace attendant
