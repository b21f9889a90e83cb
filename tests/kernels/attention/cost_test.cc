// SPDX-License-Identifier: Apache-2.0
// What Measure declares is what Run takes, whatever the kind, the mask and the shape: limits on
// operations are limits on time. An operation of one call may take at most three times as long as
// one of plain attention with heads of 64, the call that the unit was chosen for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/attention/registry.h"
#include "kernels/core/arena.h"
#include "kernels/cpu/simd/isa_level.h"
#include "tests/kernels/attention/scored/scored_call.h"

namespace attendant::attention {
namespace {

using Shape = TestCall::Shape;

enum class MaskKind {
  kNone,
  kKeys,
  kOneByte,
  kByQuery,
  kByQueryBf16,
  kCausal,
  kWindow,
  kAlibi,
  kAlibiKeys,
  kAlibiOneByte,
  kAlibiWindowOneByte,
};
constexpr const char* kMaskNames[] = {"none",
                                      "keys",
                                      "one byte",
                                      "by query",
                                      "by query bf16",
                                      "causal",
                                      "window",
                                      "alibi",
                                      "alibi + keys",
                                      "alibi + one byte",
                                      "alibi + window + one byte"};

struct Case {
  const char* name;
  Shape shape;
  int64_t short_sequences = 0;  // instead of shape.batch: of one token, and one of two
  int64_t block = 0;
};

// Beside the call, what it points to.
class CostCall {
 public:
  CostCall(Kind kind, DType dtype, const Case& c, MaskKind mask)
      : starts_(Starts(c.short_sequences)),
        test_(c.short_sequences == 0
                  ? ScoredCall(kind, dtype, c.shape, /*projected=*/64)
                  : ScoredCall(kind, dtype, c.shape, starts_, starts_, /*projected=*/8)) {
    Call& call = test_.call;
    call.block = c.block;
    if (kind == Kind::kLocal) call.mask.window = 16;
    SetMask(mask);
  }

  Call& call() { return test_.call; }

 private:
  static std::vector<int64_t> Starts(int64_t batch) {
    std::vector<int64_t> starts(static_cast<size_t>(batch) + 1);
    std::iota(starts.begin(), starts.end(), 0);
    if (batch > 0) ++starts.back();
    return starts;
  }

  void SetMask(MaskKind kind) {
    Call& call = test_.call;
    const int64_t queries = call.queries.max_len(), keys = call.keys.max_len();
    const bool alibi = kind >= MaskKind::kAlibi;
    if (alibi) {
      slopes_.assign(static_cast<size_t>(call.query.heads), 0.25f);
      call.mask.alibi_slopes = slopes_;
    }
    if (kind == MaskKind::kWindow || kind == MaskKind::kAlibiWindowOneByte) call.mask.window = 8;
    if (kind == MaskKind::kCausal) call.mask.causal = true;
    if (kind == MaskKind::kKeys || kind == MaskKind::kAlibiKeys) {
      bytes_.assign(static_cast<size_t>(call.keys.tokens()), 1);
      bytes_.front() = 0;
      call.mask.keys = {bytes_.data(), {call.keys.tokens()}};
    } else if (kind == MaskKind::kByQuery) {
      SetTensor(queries, keys, MaskTensor::Type::kBool, 1);
    } else if (kind == MaskKind::kByQueryBf16) {
      SetTensor(queries, keys, MaskTensor::Type::kBf16, 2);
    } else if (kind == MaskKind::kOneByte || kind == MaskKind::kAlibiOneByte ||
               kind == MaskKind::kAlibiWindowOneByte) {
      SetTensor(1, 1, MaskTensor::Type::kBool, 1);
    }
  }

  void SetTensor(int64_t rows, int64_t columns, MaskTensor::Type type, int64_t value_bytes) {
    bytes_.assign(static_cast<size_t>(rows * columns * value_bytes),
                  type == MaskTensor::Type::kBool ? 1 : 0);
    test_.call.mask.tensor = {.type = type, .values = bytes_.data(), .dims = {1, 1, rows, columns}};
  }

  std::vector<int64_t> starts_;
  std::vector<uint8_t> bytes_;
  std::vector<float> slopes_;
  ScoredCall test_;
};

// CPU seconds of Run alone, the least of several: what others take of the machine does not count.
class Stopwatch {
 public:
  double Seconds(const Call& call, const Cost& cost) {
    scratch_.resize(static_cast<size_t>(cost.scratch_bytes) + kScratchAlignment);
    out_.resize(static_cast<size_t>(cost.out_bytes));
    weights_.resize(static_cast<size_t>(cost.weights_bytes) / sizeof(float));
    auto address = reinterpret_cast<uintptr_t>(scratch_.data());
    address = (address + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    Outputs outputs;
    outputs.out =
        call.queries.packed()
            ? OutputRows::TokensFirst(out_.data(), cost.out_heads, cost.out_dim)
            : OutputRows::HeadsFirst(out_.data(), cost.out_heads, cost.out_dim, call.queries.seq());
    outputs.attention_weights = weights_.empty() ? nullptr : weights_.data();
    double least = INFINITY;
    for (int round = 0; round < 3; ++round) {
      const double start = Now();
      EXPECT_TRUE(RunMeasured(call, cost, pool_,
                              {reinterpret_cast<std::byte*>(address),
                               static_cast<size_t>(cost.scratch_bytes)},
                              outputs)
                      .ok());
      least = std::min(least, Now() - start);
    }
    return least;
  }

 private:
  static double Now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  ThreadPool pool_{1};
  std::vector<std::byte> scratch_, out_;
  std::vector<float> weights_;
};

constexpr Case kPlain{
    "heads of 64",
    {.batch = 1, .heads = 2, .queries = 512, .keys = 512, .head_dim = 64, .value_dim = 64}};
const Case kCases[] = {
    kPlain,
    {"heads of 1",
     {.batch = 1, .heads = 2, .queries = 512, .keys = 512, .head_dim = 1, .value_dim = 1}},
    {"one query",
     {.batch = 16, .heads = 1, .queries = 1, .keys = 1024, .head_dim = 8, .value_dim = 8}},
    {"one key",
     {.batch = 16, .heads = 1, .queries = 1024, .keys = 1, .head_dim = 8, .value_dim = 8}},
    {"short sequences", {.heads = 4, .head_dim = 1, .value_dim = 1}, /*short_sequences=*/1024},
    {"blocks of 1",
     {.batch = 1, .heads = 2, .queries = 512, .keys = 512, .head_dim = 2, .value_dim = 2},
     0,
     1},
    {"blocks of 2",
     {.batch = 1, .heads = 2, .queries = 512, .keys = 512, .head_dim = 2, .value_dim = 2},
     0,
     2},
};

constexpr Kind kKinds[] = {
    Kind::kDotProduct, Kind::kFlash,        Kind::kLocal,       Kind::kStrided, Kind::kAdditive,
    Kind::kLuongDot,   Kind::kLuongGeneral, Kind::kLuongConcat, Kind::kLinear,  Kind::kLinformer};

class CostTest : public testing::Test {
 protected:
  CostTest() : plain_(Kind::kDotProduct, DType::kF32, kPlain, MaskKind::kNone) {
    plain_cost_ = *Measure(plain_.call(), 1);
  }

  // How much longer an operation of `call` takes than one of plain attention.
  double Ratio(const Call& call, const Cost& cost) {
    const double unit = stopwatch_.Seconds(plain_.call(), plain_cost_) /
                        static_cast<double>(plain_cost_.operations);
    return stopwatch_.Seconds(call, cost) / static_cast<double>(cost.operations) / unit;
  }

  // The machine may be busy with something else: one of several tries must fit.
  void Check(const Call& call, const Cost& cost, const std::string& what) {
    constexpr int kTries = 20;
    const double most = MostRatio();
    double ratio = 0;
    for (int i = 0; i < kTries; ++i) {
      ratio = Ratio(call, cost);
      if (ratio <= most && ratio >= 1 / most) break;
    }
    EXPECT_LE(ratio, most) << what;
    EXPECT_GE(ratio, 1 / most) << what;
    largest_ = std::max(largest_, ratio);
    least_ = std::min(least_, ratio);
  }

  // The figures are those of AVX-512. Narrower vectors compute slower beside all else.
  static double MostRatio() { return BestIsa()->isa == CpuIsa::kAvx2 ? 6 : 3; }

  Stopwatch stopwatch_;
  CostCall plain_;
  Cost plain_cost_;
  double largest_ = 0, least_ = INFINITY;
};

TEST_F(CostTest, AnOperationTakesTheSameTimeEverywhere) {
  for (const Kind kind : kKinds) {
    for (const Case& c : kCases) {
      if (c.block != 0 && kind != Kind::kStrided) continue;
      for (size_t mask = 0; mask < std::size(kMaskNames); ++mask) {
        for (const WeightsWanted weights : {WeightsWanted::kNone, WeightsWanted::kPerHead}) {
          CostCall test(kind, DType::kF32, c, static_cast<MaskKind>(mask));
          test.call().need_weights = weights;
          const absl::StatusOr<Cost> cost = Measure(test.call(), 1);
          if (!cost.ok()) continue;  // the kind has no such mask, or no weights
          Check(test.call(), *cost,
                absl::StrCat(FindOperator(kind)->name, ", ", c.name, ", mask: ", kMaskNames[mask],
                             weights == WeightsWanted::kNone ? "" : ", weights"));
        }
      }
    }
  }
  std::printf("an operation takes %.2f to %.2f times as long as one of plain attention\n", least_,
              largest_);
}

}  // namespace
}  // namespace attendant::attention
