// SPDX-License-Identifier: Apache-2.0
#include "server/models/memory/model_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

using Files = std::map<std::string, std::string>;

struct AvailableCase {
  const char* name;
  Files files;
  int64_t bytes;  // -1: unknown
  const char* reason;
};

class AvailableMemoryTest : public testing::TestWithParam<AvailableCase> {};

TEST_P(AvailableMemoryTest, TheLeastCounts) {
  TempDirectory root;
  for (const auto& [path, text] : GetParam().files) {
    std::filesystem::create_directories(std::filesystem::path(root / path).parent_path());
    WriteFile(root / path, text);
  }
  const auto available = ReadAvailableMemory(root / "cgroup", root / "meminfo");
  EXPECT_EQ(available ? available->bytes : -1, GetParam().bytes);
  EXPECT_THAT(available ? available->reason : "", HasSubstr(GetParam().reason));
}

const char kMeminfo[] = "MemTotal: 4096 kB\nMemFree: 10 kB\nMemAvailable:   2048 kB\n";
const AvailableCase kAvailable[] = {
    {"Nothing", {}, -1, ""},
    {"TheSystem", {{"meminfo", kMeminfo}}, 2 * kMiB, "MemAvailable"},
    {"Version2",
     {{"meminfo", kMeminfo},
      {"cgroup/memory.max", "1000000"},
      {"cgroup/memory.current", "700000"},
      {"cgroup/memory.stat", "anon 1\ninactive_file 150000\nactive_file 50000\nshmem 9\n"}},
     500000,
     "limit is 1000000 bytes, 500000"},
    {"Version2WithoutLimit",
     {{"meminfo", kMeminfo}, {"cgroup/memory.max", "max"}, {"cgroup/memory.current", "700000"}},
     2 * kMiB,
     "MemAvailable"},
    {"Version1",
     {{"meminfo", kMeminfo},
      {"cgroup/memory/memory.limit_in_bytes", "1000000"},
      {"cgroup/memory/memory.usage_in_bytes", "700000"},
      {"cgroup/memory/memory.stat",
       "active_file 7\ntotal_inactive_file 60000\ntotal_active_file 40000\n"}},
     400000,
     "limit is 1000000 bytes"},
    {"Version1WithoutLimit",
     {{"meminfo", kMeminfo},
      {"cgroup/memory/memory.limit_in_bytes", "9223372036854771712"},
      {"cgroup/memory/memory.usage_in_bytes", "700000"}},
     2 * kMiB,
     "MemAvailable"},
    {"BeyondTheLimit",
     {{"cgroup/memory.max", "100"}, {"cgroup/memory.current", "700"}},
     0,
     "limit"},
    {"Damaged",
     {{"cgroup/memory.max", "x"}, {"cgroup/memory.current", ""}, {"meminfo", "MemAv"}},
     -1,
     ""},
};

INSTANTIATE_TEST_SUITE_P(All, AvailableMemoryTest, testing::ValuesIn(kAvailable),
                         [](const auto& tested) { return std::string(tested.param.name); });

ModelMemory::Available Has(int64_t bytes) {
  return [bytes] { return AvailableMemory{.bytes = bytes, .reason = "as the test says"}; };
}

TEST(ModelMemoryTest, AModelMustFitIntoWhatTheMachineHas) {
  ModelMemory memory(0, Has(1000));
  EXPECT_TRUE(memory.Reserve({.weight_bytes = 700, .session_bytes = 200, .load_bytes = 100}).ok());
  const absl::Status refused =
      memory.Reserve({.weight_bytes = 700, .session_bytes = 200, .load_bytes = 101}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("1001 bytes"), HasSubstr("weights 700"), HasSubstr("memory 200"),
                    HasSubstr("1000 are available: as the test says")));
}

TEST(ModelMemoryTest, AllModelsTogetherMustFitIntoTheLimit) {
  ModelMemory memory(1000, [] { return std::nullopt; });
  auto first = memory.Reserve({.weight_bytes = 500, .session_bytes = 100, .load_bytes = 9000});
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status refused = memory.Reserve({.weight_bytes = 401}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("about 401"), HasSubstr("take 600"), HasSubstr("is 1000")));
  first->Resize(550);
  auto second = memory.Reserve({.weight_bytes = 450});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(memory.held_bytes(), 1000);
  ModelMemory::Share moved = *std::move(first);
  EXPECT_EQ(memory.held_bytes(), 1000);
  moved = *std::move(second);
  EXPECT_EQ(memory.held_bytes(), 450) << "a share that is replaced is given back";
  moved = {};
  EXPECT_EQ(memory.held_bytes(), 0);
}

// The callback takes the place of a second thread between the first one's checks.
TEST(ModelMemoryTest, AModelReservedMeanwhileCounts) {
  absl::StatusOr<ModelMemory::Share> other = ModelMemory::Share();
  bool asked = false;
  ModelMemory memory(1000, [&]() -> std::optional<AvailableMemory> {
    if (!std::exchange(asked, true)) other = memory.Reserve({.weight_bytes = 600});
    return std::nullopt;
  });
  const absl::Status refused = memory.Reserve({.weight_bytes = 600}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(memory.held_bytes(), 600);
}

}  // namespace
}  // namespace attendant
