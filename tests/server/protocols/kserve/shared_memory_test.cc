// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// A shared memory object of this test, filled with "0123...".
class SharedMemoryTest : public testing::Test {
 protected:
  static constexpr int64_t kBytes = 100;

  SharedMemoryTest() : descriptor_(shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
    EXPECT_GE(descriptor_, 0);
    std::string digits;
    while (digits.size() < kBytes) digits += static_cast<char>('0' + digits.size() % 10);
    EXPECT_EQ(pwrite(descriptor_, digits.data(), digits.size(), 0), kBytes);
  }
  ~SharedMemoryTest() override {
    close(descriptor_);
    shm_unlink(key_.c_str());
  }

  int64_t Size() const {
    struct stat status = {};
    EXPECT_EQ(fstat(descriptor_, &status), 0);
    return status.st_size;
  }
  std::string At(int64_t offset, size_t bytes) const {
    std::string data(bytes, '\0');
    EXPECT_EQ(pread(descriptor_, data.data(), bytes, offset), static_cast<ssize_t>(bytes));
    return data;
  }

  const std::string key_ = absl::StrCat("/attendant_test_", getpid());
  const int descriptor_;
  SharedMemoryRegions regions_;
};

TEST_F(SharedMemoryTest, ReadsAndWritesInsideARegion) {
  ASSERT_TRUE(regions_.Register("r", key_, 10, 50).ok());
  const auto range = regions_.Find("r", 5, 4);
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(*range->Read(), "5678");
  EXPECT_TRUE(range->Write("abcd").ok());
  EXPECT_EQ(At(14, 6), "4abcd9");
  EXPECT_EQ(Size(), kBytes);
}

TEST_F(SharedMemoryTest, EveryRangeIsChecked) {
  ASSERT_TRUE(regions_.Register("r", key_, 10, 50).ok());
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const auto& [offset, bytes] : {std::pair<int64_t, int64_t>{0, 51},
                                      {50, 1},
                                      {51, 0},
                                      {-1, 1},
                                      {0, -1},
                                      {kMost, 1},
                                      {1, kMost},
                                      {kMost, kMost}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(regions_.Find("r", offset, bytes).status()))
        << offset << ", " << bytes;
  }
  EXPECT_TRUE(regions_.Find("r", 50, 0).ok());
  EXPECT_TRUE(absl::IsNotFound(regions_.Find("other", 0, 1).status()));
}

TEST_F(SharedMemoryTest, WhatCannotBeRegisteredSaysWhy) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  using Case = std::tuple<std::string, std::string, uint64_t, uint64_t, absl::StatusCode>;
  const Case cases[] = {{"", key_, 0, 1, absl::StatusCode::kInvalidArgument},
                        {std::string(257, 'r'), key_, 0, 1, absl::StatusCode::kInvalidArgument},
                        {"r", key_, 0, 0, absl::StatusCode::kInvalidArgument},
                        {"r", key_, 0, 101, absl::StatusCode::kInvalidArgument},
                        {"r", key_, 100, 1, absl::StatusCode::kInvalidArgument},
                        {"r", key_, kMost, 2, absl::StatusCode::kInvalidArgument},
                        {"r", key_, 2, kMost, absl::StatusCode::kInvalidArgument},
                        {"r", "", 0, 1, absl::StatusCode::kInvalidArgument},
                        {"r", "/", 0, 1, absl::StatusCode::kInvalidArgument},
                        {"r", "/..", 0, 1, absl::StatusCode::kInvalidArgument},
                        {"r", "/../etc/passwd", 0, 1, absl::StatusCode::kInvalidArgument},
                        {"r", std::string("/a\0b", 4), 0, 1, absl::StatusCode::kInvalidArgument},
                        {"r", key_ + "_absent", 0, 1, absl::StatusCode::kNotFound}};
  for (const auto& [name, key, offset, bytes, code] : cases) {
    EXPECT_EQ(regions_.Register(name, key, offset, bytes).code(), code) << key << " " << offset;
  }
  ASSERT_TRUE(regions_.Register("r", key_, 0, 100).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(regions_.Register("r", key_, 0, 100)));
  for (int i = 1; i < 256; ++i) {
    ASSERT_TRUE(regions_.Register(absl::StrCat(i), key_, 0, 100).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(regions_.Register("more", key_, 0, 100)));
}

// Reading a mapping would end the process here.
TEST_F(SharedMemoryTest, MemoryThatWasShortenedIsAnError) {
  ASSERT_TRUE(regions_.Register("r", key_, 0, 100).ok());
  const auto range = regions_.Find("r", 0, 100);
  ASSERT_EQ(ftruncate(descriptor_, 60), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(range->Read().status()));
  EXPECT_TRUE(absl::IsInvalidArgument(range->Write(std::string(100, 'x'))));
  EXPECT_EQ(Size(), 60) << "writing does not make it longer";
  EXPECT_TRUE(regions_.Find("r", 0, 60)->Read().ok());
}

TEST_F(SharedMemoryTest, RegionsAreListedAndGo) {
  ASSERT_TRUE(regions_.Register("a", key_, 10, 50).ok());
  ASSERT_TRUE(regions_.Register("b", key_, 0, 100).ok());
  EXPECT_EQ(regions_.List("")->size(), 2u);
  const auto listed = regions_.List("a");
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->at("a").key, key_);
  EXPECT_EQ(listed->at("a").offset, 10);
  EXPECT_EQ(listed->at("a").bytes, 50);
  const auto range = regions_.Find("a", 0, 4);
  regions_.Unregister("a");
  EXPECT_THAT(std::string(regions_.List("a").status().message()), HasSubstr("Unable to find"));
  EXPECT_EQ(*range->Read(), "0123") << "a request that has found it uses it to its end";
  regions_.Unregister("a");
  regions_.Unregister("");
  EXPECT_TRUE(regions_.List("")->empty());
}

}  // namespace
}  // namespace attendant
