// SPDX-License-Identifier: Apache-2.0
// Options that no client can be made with.
#include "client/connect_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "client/client.h"

namespace attendant::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void ExpectRefused(const ConnectOptions& options, const std::string& what,
                   const std::string& words) {
  const absl::Status status = Client::Connect(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr(what), HasSubstr(words)));
}

// A device has no end, and a disk's image has one that memory does not hold.
TEST(ConnectOptionsTest, FilesOfTheConnectionHaveAnEnd) {
  const std::string image = ::testing::TempDir() + "/image.pem";
  std::ofstream(image).flush();
  std::filesystem::resize_file(image, size_t{10} << 30);
  for (const std::string& file : {image, std::string("/dev/full"), std::string("/dev/zero")}) {
    ExpectRefused({.tls = {.ca_file = file}}, file, "has more than 16777216 bytes");
    ExpectRefused({.tls = {.cert_file = file, .key_file = file}}, file, "has more than");
  }
  std::filesystem::remove(image);
  ExpectRefused({.api_key_file = "/dev/zero"}, "/dev/zero", "it is longer than 4096 bytes");
}

TEST(ConnectOptionsTest, AFolderHasNoKey) {
  const std::string folder = ::testing::TempDir();
  ExpectRefused({.api_key_file = folder}, folder, "Is a directory");
}

TEST(ConnectOptionsTest, ATimeoutIsAboveZero) {
  ExpectRefused({.timeout = absl::ZeroDuration()}, "the timeout is 0", "it must be above 0");
  ExpectRefused({.timeout = -absl::Seconds(1)}, "the timeout is -1s", "it must be above 0");
  ExpectRefused({.timeout = -absl::InfiniteDuration()}, "the timeout is -inf", "must be above 0");
  EXPECT_TRUE(Client::Connect({.timeout = absl::InfiniteDuration()}).ok());
}

}  // namespace
}  // namespace attendant::client
