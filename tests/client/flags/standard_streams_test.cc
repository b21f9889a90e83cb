// SPDX-License-Identifier: Apache-2.0
#include "client/flags/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace attendant {
namespace {

TEST(StandardStreamsTest, AFileDoesNotGetTheNumberOfAClosedStream) {
  const auto run = [] {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
    ReserveStandardStreams();
    char byte = 0;
    const bool reserved = open("/dev/null", O_RDWR) > STDERR_FILENO;
    const bool usable = read(STDIN_FILENO, &byte, 1) >= 0 || write(STDOUT_FILENO, &byte, 1) >= 0 ||
                        write(STDERR_FILENO, &byte, 1) >= 0;
    _exit(reserved && !usable ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST(StandardStreamsTest, AnOpenStreamStays) {
  const auto run = [] {
    ReserveStandardStreams();
    dprintf(STDERR_FILENO, "still here");
    _exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "still here");
}

}  // namespace
}  // namespace attendant
