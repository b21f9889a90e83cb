// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/arena.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

void AskFor(Arena& arena, float** floats, char** bytes) {
  *floats = arena.Allocate<float>(3);
  *bytes = arena.Allocate<char>(65);
}

TEST(ArenaTest, MeasuresThenGivesAlignedPiecesThatDoNotOverlap) {
  float* floats = nullptr;
  char* bytes = nullptr;
  Arena measure(0);
  AskFor(measure, &floats, &bytes);
  EXPECT_EQ(floats, nullptr);
  EXPECT_EQ(measure.used_bytes(), 64 + 128);

  Arena arena(measure.used_bytes());
  AskFor(arena, &floats, &bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(floats) % Arena::kAlignment, 0u);
  EXPECT_EQ(bytes - reinterpret_cast<char*>(floats), 64);
  EXPECT_EQ(arena.used_bytes(), measure.used_bytes());
}

TEST(ArenaTest, HoldsAPieceOfAnySizeThatItWasMadeFor) {
  Arena arena(65);
  EXPECT_NE(arena.Allocate<char>(65), nullptr);
}

TEST(ArenaDeathTest, AskingForMoreThanMeasuredIsABug) {
  Arena arena(64);
  arena.Allocate<float>(16);
  EXPECT_DEATH(arena.Allocate<char>(1), "check failed");
}

}  // namespace
}  // namespace attendant
