// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/engine_commands.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/bench/workload.h"

namespace attendant::bench {
namespace {

std::string Error(const std::string& why) { return absl::StrCat("{\"error\": \"", why, "\"}"); }

std::string Rate(Engine& engine, const std::vector<int64_t>& lens) {
  const double rate = engine.TokensPerSecond(lens);
  const double tokens = static_cast<double>(std::reduce(lens.begin(), lens.end()));
  return absl::StrCat("{\"tokens_per_second\": ", rate,
                      ", \"flops\": ", rate / tokens * Flops(engine.config(), lens), "}");
}

std::string Latency(Engine& engine, int64_t len) {
  const std::vector<double> times = engine.Latencies(len);
  return absl::StrCat("{\"p50_ms\": ", 1e3 * times[times.size() / 2],
                      ", \"p99_ms\": ", 1e3 * times[times.size() * 99 / 100], "}");
}

std::string Embedding(Engine& engine, const std::vector<int64_t>& numbers) {
  const std::vector<int32_t> ids(numbers.begin(), numbers.end());
  return absl::StrCat("{\"embedding\": [", absl::StrJoin(engine.Embed(ids), ", "), "]}");
}

// REQUIRES: `numbers` fit the model; what sends them is our own.
std::string Answer(Engine& engine, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  std::vector<int64_t> numbers;
  for (int64_t number = 0; words >> number;) numbers.push_back(number);
  if (command == "ceiling") return absl::StrCat("{\"flops\": ", engine.Ceiling(), "}");
  if (numbers.empty()) return Error("give numbers after the command");
  if (command == "rate") return Rate(engine, numbers);
  if (command == "latency") return Latency(engine, numbers.front());
  if (command == "embed") return Embedding(engine, numbers);
  return Error("unknown command");
}

}  // namespace

void AnswerCommands(Engine& engine) {
  const auto print = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  print(absl::StrCat("{\"ready\": \"Attendant\", \"isa\": \"", engine.info().isa, "\"}"));
  for (std::string line; std::getline(std::cin, line);) print(Answer(engine, line));
}

}  // namespace attendant::bench
