// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/cpu_isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant::cpu {
namespace {

using testing::HasSubstr;

template <typename... Bits>
constexpr uint32_t Bit(Bits... bits) {
  return ((1u << bits) | ...);
}

// Generations of processors, by the bits that matter here.
constexpr CpuIdWords kIvyBridge{.leaf1_ecx = Bit(27, 28), .xcr0 = 0x7};
constexpr CpuIdWords kHaswell{.leaf1_ecx = Bit(12, 27, 28), .leaf7_ebx = Bit(5), .xcr0 = 0x7};
constexpr CpuIdWords kAlderLake{
    .leaf1_ecx = Bit(12, 27, 28), .leaf7_ebx = Bit(5), .leaf7_1_eax = Bit(4), .xcr0 = 0x7};
constexpr CpuIdWords kSkylakeSp{
    .leaf1_ecx = Bit(12, 27, 28), .leaf7_ebx = Bit(5, 16, 17, 30, 31), .xcr0 = 0xe7};
constexpr CpuIdWords kCascadeLake{.leaf1_ecx = Bit(12, 27, 28),
                                  .leaf7_ebx = Bit(5, 16, 17, 30, 31),
                                  .leaf7_ecx = Bit(11),
                                  .xcr0 = 0xe7};
// All bits, as one said them itself.
constexpr CpuIdWords kZen4{.leaf1_ecx = 0xfffa3203,
                           .leaf7_ebx = 0xf1bf07ab,
                           .leaf7_ecx = 0x405fc6,
                           .leaf7_edx = 0x10,
                           .leaf7_1_eax = 0x20,
                           .xcr0 = 0xe7};
constexpr CpuIdWords kSapphireRapids{.leaf1_ecx = Bit(12, 27, 28),
                                     .leaf7_ebx = Bit(5, 16, 17, 30, 31),
                                     .leaf7_ecx = Bit(11),
                                     .leaf7_edx = Bit(22, 24, 25),
                                     .leaf7_1_eax = Bit(4, 5),
                                     .xcr0 = 0x600e7,
                                     .tile_data_allowed = true};

CpuIdWords With(CpuIdWords words, void (*change)(CpuIdWords&)) {
  change(words);
  return words;
}

TEST(CpuIsaTest, TheBestLevelOfRealProcessors) {
  EXPECT_EQ(*ChooseCpuIsa(CpuIsa::kAuto, kHaswell), CpuIsa::kAvx2);
  EXPECT_EQ(*ChooseCpuIsa(CpuIsa::kAuto, kAlderLake), CpuIsa::kAvx2Vnni);
  EXPECT_EQ(*ChooseCpuIsa(CpuIsa::kAuto, kSkylakeSp), CpuIsa::kAvx512);
  EXPECT_EQ(*ChooseCpuIsa(CpuIsa::kAuto, kCascadeLake), CpuIsa::kAvx512Vnni);
  EXPECT_EQ(*ChooseCpuIsa(CpuIsa::kAuto, kZen4), CpuIsa::kAvx512Bf16);
  EXPECT_EQ(*ChooseCpuIsa(CpuIsa::kAuto, kSapphireRapids), CpuIsa::kAmx);
}

TEST(CpuIsaTest, WithoutAvx2ThereIsNone) {
  for (CpuIsa wanted : {CpuIsa::kAuto, CpuIsa::kAvx2, CpuIsa::kAmx}) {
    for (const CpuIdWords& words : {kIvyBridge, CpuIdWords{}}) {
      const auto isa = ChooseCpuIsa(wanted, words);
      EXPECT_EQ(isa.status().code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(std::string(isa.status().message()), HasSubstr("AVX2 and FMA"));
    }
  }
}

// What the processor has, the operating system must save and allow.
TEST(CpuIsaTest, TheOperatingSystemHasItsSay) {
  const auto best = [](const CpuIdWords& words) { return *ChooseCpuIsa(CpuIsa::kAuto, words); };
  EXPECT_EQ(best(With(kSapphireRapids, [](CpuIdWords& w) { w.tile_data_allowed = false; })),
            CpuIsa::kAvx512Bf16);
  EXPECT_EQ(best(With(kSapphireRapids, [](CpuIdWords& w) { w.xcr0 = 0x200e7; })),
            CpuIsa::kAvx512Bf16)
      << "tile configuration without tile data";
  EXPECT_EQ(best(With(kSapphireRapids, [](CpuIdWords& w) { w.xcr0 = 0x67; })), CpuIsa::kAvx2Vnni)
      << "the upper zmm registers are not saved";
  EXPECT_FALSE(
      ChooseCpuIsa(CpuIsa::kAuto, With(kHaswell, [](CpuIdWords& w) { w.xcr0 = 0x3; })).ok());
  EXPECT_FALSE(
      ChooseCpuIsa(CpuIsa::kAuto, With(kHaswell, [](CpuIdWords& w) { w.leaf1_ecx &= ~(1u << 27); }))
          .ok());
}

TEST(CpuIsaTest, AmxNeedsTilesAndBothFormats) {
  for (uint32_t bit : {22u, 24u, 25u}) {
    CpuIdWords words = kSapphireRapids;
    words.leaf7_edx &= ~(1u << bit);
    EXPECT_EQ(*ChooseCpuIsa(CpuIsa::kAuto, words), CpuIsa::kAvx512Bf16) << bit;
  }
}

// A level stands for all that it is built on, whatever else the bits say (a hypervisor may mask
// any).
TEST(CpuIsaTest, NoLevelIsSkipped) {
  const CpuIdWords words = With(kSapphireRapids, [](CpuIdWords& w) { w.leaf7_ecx &= ~(1u << 11); });
  EXPECT_EQ(*ChooseCpuIsa(CpuIsa::kAuto, words), CpuIsa::kAvx512);
  EXPECT_FALSE(ChooseCpuIsa(CpuIsa::kAmx, words).ok());
}

// AVX-512 is not built on it: Zen 4 lacks it.
TEST(CpuIsaTest, AvxVnniMayBeMissingBelowAvx512) {
  EXPECT_TRUE(ChooseCpuIsa(CpuIsa::kAvx2Vnni, kSapphireRapids).ok());
  const auto refused = ChooseCpuIsa(CpuIsa::kAvx2Vnni, kZen4);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(refused.status().message(),
            "this machine cannot compute with avx2_vnni: it lacks AVX-VNNI; its best is "
            "avx512_bf16");
}

TEST(CpuIsaTest, LowerLevelsCanBeAskedForAndHigherOnesAreRefused) {
  for (CpuIsa isa : kCpuIsaLevels) EXPECT_EQ(*ChooseCpuIsa(isa, kSapphireRapids), isa);
  const auto refused = ChooseCpuIsa(CpuIsa::kAvx512Bf16, kCascadeLake);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(refused.status().message(),
            "this machine cannot compute with avx512_bf16: it lacks AVX512_BF16; its best is "
            "avx512_vnni");
}

TEST(CpuIsaTest, NamesAreReadAsTheyAreWritten) {
  EXPECT_EQ(*ParseCpuIsa(CpuIsaName(CpuIsa::kAuto)), CpuIsa::kAuto);
  for (CpuIsa isa : kCpuIsaLevels) EXPECT_EQ(*ParseCpuIsa(CpuIsaName(isa)), isa);
  const auto unknown = ParseCpuIsa("sse4");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("'sse4'"));
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("avx512_vnni, avx512_bf16, amx"));
}

// The compiler's run-time library asks the same processor in its own words.
TEST(CpuIsaTest, ThisMachineAgreesWithTheCompiler) {
  const CpuIdWords words = ReadCpuIdWords();
  const auto has = [&](CpuIsa isa) { return ChooseCpuIsa(isa, words).ok(); };
  EXPECT_EQ(has(CpuIsa::kAvx2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#ifndef __clang__  // clang 14 does not know the name
  EXPECT_EQ(has(CpuIsa::kAvx2Vnni), has(CpuIsa::kAvx2) && __builtin_cpu_supports("avxvnni"));
#endif
  EXPECT_EQ(has(CpuIsa::kAvx512),
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
  EXPECT_EQ(has(CpuIsa::kAvx512Bf16),
            __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16"));
}

}  // namespace
}  // namespace attendant::cpu
