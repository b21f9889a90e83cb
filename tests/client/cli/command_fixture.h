// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "tests/client/fake_server.h"
#include "tests/support/checkpoint.h"

namespace attendant::client {

// The whole program against a server in this process.
class CommandTest : public ::testing::Test {
 protected:
  // Runs `attendant` with --server set, unless the command takes none.
  int Run(std::vector<std::string> args, const std::string& input = "") {
    if (args.size() > 0 && args[0] != "help") {
      args.insert(args.begin() + 1, absl::StrCat("--server=", server_.address()));
    }
    return RunAsGiven(args, input);
  }

  int RunAsGiven(const std::vector<std::string>& args, const std::string& input = "") {
    std::istringstream in(input);
    std::ostringstream out, err;
    Io io{.in = in, .out = out, .err = err};
    const int exit_code = RunAttendant(args, io);
    out_ = out.str();
    err_ = err.str();
    return exit_code;
  }

  std::string WriteFile(const std::string& name, const std::string& contents) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

  std::vector<nlohmann::json> OutputLines() const {
    std::vector<nlohmann::json> lines;
    std::istringstream out(out_);
    for (std::string line; std::getline(out, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  FakeServer server_;
  const TempDirectory folder_;  // of each test: several run at once
  std::string out_, err_;
};

}  // namespace attendant::client
