// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/engine_commands.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
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

std::string Throughput(Engine& engine, const std::vector<int64_t>& lens) {
  const Engine::Rate rate = engine.MeasureRate(lens);
  const double tokens = static_cast<double>(std::reduce(lens.begin(), lens.end()));
  return absl::StrCat(
      "{\"tokens_per_second\": ", rate.tokens_per_second,
      ", \"tokens_per_cpu_second\": ", rate.tokens_per_cpu_second, ", \"flops\": ",
      rate.tokens_per_second / tokens * Flops(engine.config(), lens, engine.options().pooling),
      "}");
}

std::string Latency(Engine& engine, int64_t len) {
  std::vector<double> times_ms = engine.Latencies(len);
  for (double& time : times_ms) time *= 1e3;
  return absl::StrCat("{\"times_ms\": [", absl::StrJoin(times_ms, ", "),
                      "], \"flops\": ", Flops(engine.config(), {len}, engine.options().pooling),
                      "}");
}

// What this process holds in memory now.
std::string Memory() {
  int64_t pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident_pages;
  return absl::StrCat("{\"resident_bytes\": ", resident_pages * sysconf(_SC_PAGESIZE), "}");
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
  if (command == "memory") return Memory();
  if (command == "ceiling") return absl::StrCat("{\"flops\": ", engine.Ceiling(), "}");
  if (numbers.empty()) return Error("give numbers after the command");
  if (command == "rate") return Throughput(engine, numbers);
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
