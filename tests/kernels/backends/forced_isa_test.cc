// SPDX-License-Identifier: Apache-2.0
// Every instruction set this machine can be held down to, oneDNN included, with every format and
// with dimensions that nobody chose for speed: fast matmuls and right answers, or a refusal that
// says what to use instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/backends/backends.h"
#include "kernels/cpu/matmul/onednn_matmul.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "kernels/cpu/simd/isa_level.h"
#include "kernels/reference/reference_backend.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "tests/support/backends.h"
#include "tests/support/checkpoint.h"
#include "tests/support/in_child.h"

namespace attendant {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::Eq;
using testing::HasSubstr;
using testing::Matcher;
using testing::StartsWith;

struct Expected {
  cpu::CpuIsa isa;
  bool bf16, vnni;
  dnnl::cpu_isa onednn;
};
constexpr Expected kExpected[] = {
    {cpu::CpuIsa::kAvx2, false, false, dnnl::cpu_isa::avx2},
    {cpu::CpuIsa::kAvx2Vnni, false, true, dnnl::cpu_isa::avx2_vnni},
    {cpu::CpuIsa::kAvx512, false, false, dnnl::cpu_isa::avx512_core},
    {cpu::CpuIsa::kAvx512Vnni, false, true, dnnl::cpu_isa::avx512_core_vnni},
    {cpu::CpuIsa::kAvx512Bf16, true, true, dnnl::cpu_isa::avx512_core_bf16},
    {cpu::CpuIsa::kAmx, true, true, dnnl::cpu_isa::avx512_core_amx},
};
const Expected& Of(cpu::CpuIsa isa) { return kExpected[static_cast<int>(isa) - 1]; }

class ForcedIsaTest : public testing::TestWithParam<cpu::CpuIsa> {
 protected:
  void SetUp() override {
    const auto available = cpu::ChooseCpuIsa(GetParam(), cpu::ReadCpuIdWords());
    if (!available.ok()) GTEST_SKIP() << available.status();
  }
};

EncoderConfig Shape(int64_t hidden, int64_t heads, int64_t ffn) {
  return {.layers = 2,
          .heads = heads,
          .hidden = hidden,
          .ffn = ffn,
          .vocab = 50,
          .max_positions = 64,
          .segment_types = 2,
          .layer_norm_epsilon = 1e-12f};
}

// A head of one value, odd heads, nothing a multiple of 16, and a huge or tiny ffn.
// MiniLM's width comes last.
const std::vector<EncoderConfig> kShapes = {
    Shape(64, 4, 256),  Shape(36, 3, 100),   Shape(35, 5, 77),  Shape(3, 3, 1),      Shape(1, 1, 3),
    Shape(130, 2, 258), Shape(48, 4, 20000), Shape(200, 8, 17), Shape(384, 12, 1536)};

void ExpectCloseToReference(const EncoderConfig& config, const PreparedEncoder& encoder,
                            float tolerance) {
  const auto reference =
      *MakeReferenceBackend()->Prepare(config, RandomWeights(config, 5), DType::kF32);
  const SessionLimits limits{.max_batch_tokens = 200, .max_batch_sequences = 8};
  const auto expected_session = *reference->NewSession(limits, 1);
  const auto session = *encoder.NewSession(limits, 2);
  const auto sequences = RandomSequences(config, {1, 17, 64, 5}, 3);
  const auto expected = RunBatch(*expected_session, sequences);
  const auto actual = RunBatch(*session, sequences);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i].last_hidden_state, RunBatch(*session, {sequences[i]})[0].last_hidden_state)
        << "batched is not alone";
    EXPECT_LE(LargestDifference(actual[i].last_hidden_state, expected[i].last_hidden_state),
              tolerance);
  }
}

// What a format's rounding may do to states of variance 1 over two layers.
float Tolerance(DType dtype) {
  return dtype == DType::kF32 ? 1e-4f : dtype == DType::kBf16 ? 0.15f : 0.4f;
}

// The tiles, but in bf16 where k does not fill their groups; those of AMX fill it up.
Matcher<std::string> ImplementationsOf(cpu::CpuIsa isa, DType dtype, const EncoderConfig& config) {
  const int64_t group = dtype == DType::kBf16 ? 2 : 1;
  const Matcher<std::string> tiles = Eq(absl::StrCat("tiles:", cpu::CpuIsaName(isa)));
  const Matcher<std::string> onednn = StartsWith("brg");
  if (isa == cpu::CpuIsa::kAmx) return tiles;
  if (config.hidden % group == 0 && config.ffn % group == 0) return tiles;
  if (config.hidden % group != 0 && config.ffn % group != 0) return onednn;
  return AllOf(onednn, EndsWith(absl::StrCat("tiles:", cpu::CpuIsaName(isa))));
}

void LookAtMatmuls(cpu::CpuIsa isa) {
  const auto backend = MakeBackend("cpu", {.cpu_isa = std::string(cpu::CpuIsaName(isa))});
  ASSERT_TRUE(backend.ok()) << backend.status();
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    if (!(*backend)->Supports(dtype).ok()) continue;
    for (const EncoderConfig& config : kShapes) {
      SCOPED_TRACE(testing::Message()
                   << cpu::CpuIsaName(isa) << " " << std::string(DTypeName(dtype)) << " hidden "
                   << config.hidden << " heads " << config.heads << " ffn " << config.ffn);
      const auto encoder = (*backend)->Prepare(config, RandomWeights(config, 5), dtype);
      ASSERT_TRUE(encoder.ok()) << encoder.status();
      EXPECT_EQ((*encoder)->info().isa, cpu::CpuIsaName(isa));
      EXPECT_THAT((*encoder)->info().matmul_implementation, ImplementationsOf(isa, dtype, config));
      ExpectCloseToReference(config, **encoder, Tolerance(dtype));
    }
  }
  EXPECT_EQ(dnnl::get_effective_cpu_isa(), Of(isa).onednn) << "oneDNN is not held down";
}

// Every shape by oneDNN, where it has a fast matmul.
void LookAtOneDnn(cpu::CpuIsa isa) {
  const auto backend =
      MakeBackend("cpu", {.cpu_isa = std::string(cpu::CpuIsaName(isa)), .matmul = "onednn"});
  ASSERT_TRUE(backend.ok()) << backend.status();
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    if (!(*backend)->Supports(dtype).ok()) continue;
    for (const EncoderConfig& config : kShapes) {
      SCOPED_TRACE(testing::Message()
                   << cpu::CpuIsaName(isa) << " " << std::string(DTypeName(dtype)) << " hidden "
                   << config.hidden << " ffn " << config.ffn);
      const auto encoder = (*backend)->Prepare(config, RandomWeights(config, 5), dtype);
      ASSERT_TRUE(encoder.ok()) << encoder.status();
      EXPECT_EQ((*encoder)->cpu_level()->matmul, cpu::MatmulChoice::kOneDnn);
      const bool has_none =
          dtype == DType::kInt8 ? isa == cpu::CpuIsa::kAvx2 : isa < cpu::CpuIsa::kAvx512;
      const bool may_be_slow = config.hidden % 64 != 0 || (dtype == DType::kInt8 && !Of(isa).vnni);
      if (has_none || !may_be_slow) {
        EXPECT_THAT((*encoder)->info().matmul_implementation,
                    StartsWith(has_none ? "tiles" : "brg"));
      }
      ExpectCloseToReference(config, **encoder, Tolerance(dtype));
    }
  }
}

TEST_P(ForcedIsaTest, OneDnnMultipliesWhereItIsChosen) {
  InChild([] { LookAtOneDnn(GetParam()); });
}

TEST_P(ForcedIsaTest, MatmulsAreFastAndRightForEveryShape) {
  InChild([] { LookAtMatmuls(GetParam()); });
}

void LookAtFormats(cpu::CpuIsa isa) {
  const auto backend = MakeBackend("cpu", {.cpu_isa = std::string(cpu::CpuIsaName(isa))});
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_TRUE((*backend)->Supports(DType::kF32).ok());
  EXPECT_EQ((*backend)->preferred_dtype(), Of(isa).bf16 ? DType::kBf16 : DType::kF32);
  EXPECT_TRUE((*backend)->Supports(DType::kInt8).ok());
  const absl::Status status = (*backend)->Supports(DType::kBf16);
  EXPECT_EQ(status.ok(), Of(isa).bf16) << status;
  if (status.ok()) return;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("AVX512_BF16 or AMX"), HasSubstr("use f32 or int8")));
  const EncoderConfig config = kShapes[0];
  EXPECT_EQ((*backend)->Prepare(config, RandomWeights(config, 1), DType::kBf16).status(), status);
}

TEST_P(ForcedIsaTest, FormatsThatWouldBeSlowAreRefused) {
  InChild([] { LookAtFormats(GetParam()); });
}

// The second fence, behind Supports: oneDNN creates a slow matmul as well as a fast one. A matmul
// that is created is a fast one; any other is refused, and never where the processor has
// instructions for it.
void LookAtSlowMatmuls(cpu::CpuIsa isa) {
  ASSERT_TRUE(cpu::LimitOneDnn(isa).ok());
  for (const auto& [dtype, supported] :
       {std::pair{DType::kF32, true}, {DType::kBf16, Of(isa).bf16}, {DType::kInt8, Of(isa).vnni}}) {
    SCOPED_TRACE(absl::StrCat(cpu::CpuIsaName(isa), " ", DTypeName(dtype)));
    const auto matmul =
        cpu::OneDnnMatmul::Create({.dtype = dtype, .k = 96, .n = 64, .max_rows = 32});
    if (matmul.ok()) {
      const bool on_avx2 = isa < cpu::CpuIsa::kAvx512 && dtype == DType::kF32;
      EXPECT_THAT((*matmul)->implementation(), StartsWith(on_avx2 ? "gemm:jit:f32" : "brg"));
    } else {
      EXPECT_FALSE(supported);
      EXPECT_EQ(matmul.status().code(), absl::StatusCode::kUnimplemented);
      EXPECT_THAT(std::string(matmul.status().message()), HasSubstr("oneDNN has no"));
    }
  }
}

TEST_P(ForcedIsaTest, SlowMatmulsAreRefused) {
  InChild([] { LookAtSlowMatmuls(GetParam()); });
}

void HoldTwice(cpu::CpuIsa isa) {
  EXPECT_TRUE(cpu::LimitOneDnn(cpu::CpuIsa::kAuto).ok());
  EXPECT_TRUE(cpu::LimitOneDnn(isa).ok());
  EXPECT_TRUE(cpu::LimitOneDnn(isa).ok()) << "every model's back end asks again";
  const cpu::CpuIsa other = isa == cpu::CpuIsa::kAvx2 ? cpu::CpuIsa::kAvx512 : cpu::CpuIsa::kAvx2;
  const bool has_other = cpu::ChooseCpuIsa(other, cpu::ReadCpuIdWords()).ok();
  EXPECT_EQ(cpu::LimitOneDnn(other).code(),
            has_other ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kUnavailable);
}

TEST_P(ForcedIsaTest, OneLevelForTheProcess) {
  InChild([] { HoldTwice(GetParam()); });
}

void HoldTooLate(cpu::CpuIsa isa) {
  if (dnnl::get_effective_cpu_isa() == Of(isa).onednn) return;  // there is nothing to hold down
  const absl::Status status = cpu::LimitOneDnn(isa);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has computed already"));
}

TEST_P(ForcedIsaTest, HoldingDownComesFirst) {
  InChild([] { HoldTooLate(GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(Levels, ForcedIsaTest, testing::ValuesIn(cpu::kCpuIsaLevels),
                         [](const auto& parameter) {
                           return std::string(cpu::CpuIsaName(parameter.param));
                         });

// Attention operators compute on the CPU beside any back end.
void HoldBesideAnotherBackend(cpu::CpuIsa isa) {
  ASSERT_TRUE(MakeBackend("reference", {.cpu_isa = std::string(cpu::CpuIsaName(isa))}).ok());
  EXPECT_EQ(dnnl::get_effective_cpu_isa(), Of(isa).onednn);
}

TEST_P(ForcedIsaTest, HoldsTheProcessWhateverTheBackend) {
  InChild([] { HoldBesideAnotherBackend(GetParam()); });
}

TEST(ForcedIsaErrorTest, UnknownAndMissingLevelsAreErrors) {
  EXPECT_EQ(MakeBackend("cpu", {.cpu_isa = "mmx"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeBackend("cpu", {.matmul = "mkl"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  if (!cpu::ChooseCpuIsa(cpu::CpuIsa::kAmx, cpu::ReadCpuIdWords()).ok()) {
    EXPECT_EQ(MakeBackend("cpu", {.cpu_isa = "amx"}).status().code(),
              absl::StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace attendant
