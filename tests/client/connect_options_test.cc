// SPDX-License-Identifier: Apache-2.0
// Options that no client can be made with.
#include "client/connect_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "tests/support/checkpoint.h"

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
  const TempDirectory directory;
  const std::string image = directory / "image.pem";
  std::ofstream(image).flush();
  std::filesystem::resize_file(image, size_t{10} << 30);
  for (const std::string& file : {image, std::string("/dev/full"), std::string("/dev/zero")}) {
    ExpectRefused({.tls = {.ca_file = file}}, file, "has more than 16777216 bytes");
    ExpectRefused({.tls = {.cert_file = file, .key_file = file}}, file, "has more than");
  }
  ExpectRefused({.api_key_file = "/dev/zero"}, "/dev/zero", "it is longer than 4096 bytes");
}

TEST(ConnectOptionsTest, AFolderHasNoKey) {
  const TempDirectory folder;
  ExpectRefused({.api_key_file = folder.path()}, folder.path(), "Is a directory");
}

TEST(ConnectOptionsTest, AKeyMayHave4096Bytes) {
  const TempDirectory directory;
  const std::string file = directory / "long.key";
  std::ofstream(file) << std::string(4096, 'k') << "\n";
  EXPECT_TRUE(Client::Connect({.api_key_file = file}).ok());
  std::ofstream(file) << std::string(4097, 'k') << "\n";
  ExpectRefused({.api_key_file = file}, file, "it is longer than 4096 bytes");
}

TEST(ConnectOptionsTest, APortIsFrom0To65535) {
  for (const char* target : {"127.0.0.1:65535", "[::1]:65535", "dns:///localhost:65535",
                             "unix:/tmp/attendant:70000", "localhost", "70000", "[::1]"}) {
    EXPECT_TRUE(Client::Connect({.target = target}).ok()) << target;
  }
  for (const char* target : {"127.0.0.1:65536", "[::1]:65536", "dns:///localhost:65536",
                             "localhost:99999999999999999999", "localhost:65537/",
                             "localhost:+65537", "localhost: 65537", "unixhost:65537"}) {
    ExpectRefused({.target = target}, target, "has a port above 65535");
  }
  for (const char* target : {"127.0.0.1:-1", "localhost:-99999999999999999999"}) {
    ExpectRefused({.target = target}, target, "has a port below 0");
  }
}

TEST(ConnectOptionsTest, ATimeoutIsAboveZero) {
  ExpectRefused({.timeout = absl::ZeroDuration()}, "the timeout is 0", "it must be above 0");
  ExpectRefused({.timeout = -absl::Seconds(1)}, "the timeout is -1s", "it must be above 0");
  ExpectRefused({.timeout = -absl::InfiniteDuration()}, "the timeout is -inf", "must be above 0");
  EXPECT_TRUE(Client::Connect({.timeout = absl::InfiniteDuration()}).ok());
}

TEST(ConnectOptionsTest, AttemptsAreFromOneToFive) {
  for (const int attempts : {-1, 0, 6}) {
    ExpectRefused({.max_attempts = attempts}, absl::StrCat("max_attempts is ", attempts),
                  "it must be from 1 to 5");
  }
  for (const int attempts : {1, 5}) {
    EXPECT_TRUE(Client::Connect({.max_attempts = attempts}).ok()) << attempts;
  }
}

TEST(ConnectOptionsTest, EachAddressHasAPortThatServersHave) {
  for (const char* target :
       {"ipv4:127.0.0.1:65537,127.0.0.1:8001", "ipv6:[::1]:8001,[::1]:65537,[::1]:8002"}) {
    ExpectRefused({.target = target}, target, "has a port above 65535");
  }
  EXPECT_TRUE(Client::Connect({.target = "ipv4:127.0.0.1:65535,127.0.0.1:8001"}).ok());
}

}  // namespace
}  // namespace attendant::client
