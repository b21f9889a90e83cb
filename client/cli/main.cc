// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/cli/command.h"
#include "client/flags/standard_streams.h"

namespace {

using attendant::client::ChooseColors;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int TerminalColumns(int otherwise) {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  attendant::ReserveStandardStreams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that reaches its limit (ulimit -f) cannot be written
  std::ios::sync_with_stdio(false);
  // Debian's Abseil looks for deadlocks at every lock of gRPC.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // gRPC's own lines about a failed handshake would stand beside the command's one line.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  attendant::client::Io io{.in = std::cin,
                           .out = std::cout,
                           .err = std::cerr,
                           .in_is_terminal = isatty(STDIN_FILENO) != 0,
                           .err_is_terminal = isatty(STDERR_FILENO) != 0,
                           .out_colors = ChooseColors({.is_terminal = isatty(STDOUT_FILENO) != 0,
                                                       .no_color = Environment("NO_COLOR"),
                                                       .colorterm = Environment("COLORTERM"),
                                                       .term = Environment("TERM")})};
  io.out_columns = TerminalColumns(io.out_columns);
  const int exit_code = attendant::client::RunAttendant(args, io);
  std::cout.flush();
  if (exit_code != 0 || std::cout) return exit_code;
  return attendant::client::UsageError("cannot write the output", io);
}
