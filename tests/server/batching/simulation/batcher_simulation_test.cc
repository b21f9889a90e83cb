// SPDX-License-Identifier: Apache-2.0
// The batcher, its queue and its threads under every interleaving that some thousand seeds choose.
//
//   ATTENDANT_SIMULATION_SEED=N batcher_simulation_test     runs one seed, and prints what happened
//   ATTENDANT_SIMULATION_SEEDS=N batcher_simulation_test    runs so many seeds
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/server/batching/simulation/scenario.h"

namespace attendant {
namespace {

constexpr uint64_t kSeeds = 3000;

std::optional<uint64_t> FromEnvironment(const char* name) {
  const char* const text = std::getenv(name);
  uint64_t number = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// A check inside the batcher ends the process: its seed must be known then too.
char seed_text[64];
void TellSeed(int) {
  const ssize_t written = write(STDERR_FILENO, seed_text, std::strlen(seed_text));
  _exit(written > 0 ? 134 : 135);
}

void SetSeed(uint64_t seed) {
  absl::SNPrintF(seed_text, sizeof(seed_text), "ATTENDANT_SIMULATION_SEED=%d\n", seed);
}

TEST(BatcherSimulationTest, HoldsForEverySeed) {
  std::signal(SIGABRT, TellSeed);
  Events events;
  const std::optional<uint64_t> only = FromEnvironment("ATTENDANT_SIMULATION_SEED");
  const uint64_t first = only.value_or(1);
  const uint64_t seeds = only ? 1 : FromEnvironment("ATTENDANT_SIMULATION_SEEDS").value_or(kSeeds);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SetSeed(seed);
    Scenario scenario(seed);
    const std::string failure = scenario.Run();
    for (const auto& [name, count] : scenario.events()) events[name] += count;
    if (only) std::cout << scenario.trace();
    ASSERT_EQ(failure, "") << "ATTENDANT_SIMULATION_SEED=" << seed;
  }
  std::signal(SIGABRT, SIG_DFL);
  for (const auto& [name, count] : events) RecordProperty(name, absl::StrCat(count));
  if (seeds < kSeeds) return;
  for (const char* way : {"OK", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "INVALID_ARGUMENT",
                          "RESOURCE_EXHAUSTED", "UNAVAILABLE", "cancel", "drain", "drain cut short",
                          "abandoned batch", "infeasible", "left out", "lost worker", "reload",
                          "request in several batches", "shared processors", "stall"}) {
    EXPECT_GT(events[way], 100) << way;
  }
}

TEST(BatcherSimulationTest, ASeedIsARun) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Scenario once(seed), again(seed);
    once.Run();
    again.Run();
    EXPECT_TRUE(once.trace() == again.trace()) << seed;
    EXPECT_FALSE(once.trace().empty());
  }
}

}  // namespace
}  // namespace attendant
