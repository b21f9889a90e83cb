// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "client/cli/command.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  attendant::client::Io io{.in = std::cin,
                           .out = std::cout,
                           .err = std::cerr,
                           .in_is_terminal = isatty(STDIN_FILENO) != 0,
                           .err_is_terminal = isatty(STDERR_FILENO) != 0};
  const int exit_code = attendant::client::RunAttendant(args, io);
  std::cout.flush();
  return exit_code == 0 && !std::cout ? attendant::client::kExitUsage : exit_code;
}
