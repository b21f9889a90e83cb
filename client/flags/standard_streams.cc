// SPDX-License-Identifier: Apache-2.0
#include "client/flags/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

namespace attendant {

void ReserveStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest free number is this one. What is open for the other direction gives an error.
    open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace attendant
