// SPDX-License-Identifier: Apache-2.0
// Whether what Measure declares is what Run takes, whatever the kind, the mask and the shape:
// limits on operations are limits on time. For each kind of attention, how many times as long one
// of its operations takes as one of plain attention with heads of 64, for which the unit was
// chosen: the least and the most over all masks and shapes. Ends with 1 where one is over --mark,
// or under its reciprocal, in each of --tries.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/attention/registry.h"
#include "kernels/core/arena.h"
#include "tests/bench/timing.h"
#include "tests/kernels/attention/scored/scored_call.h"

ABSL_FLAG(double, mark, 3, "an operation may take so many times as long, or as short");
ABSL_FLAG(int, tries, 20, "a call beyond the mark is timed again: other programs disturb it");

namespace attendant::bench {
namespace {

using attention::Call;
using attention::Cost;
using attention::Kind;
using attention::kScratchAlignment;
using attention::MaskTensor;
using attention::OutputRows;
using attention::Outputs;
using attention::ScoredCall;
using attention::TestCall;
using attention::WeightsWanted;

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
      const double start = ThreadSeconds();
      const absl::Status status = RunMeasured(
          call, cost, pool_,
          {reinterpret_cast<std::byte*>(address), static_cast<size_t>(cost.scratch_bytes)},
          outputs);
      if (!status.ok()) Die(status);
      least = std::min(least, ThreadSeconds() - start);
    }
    return least;
  }

 private:
  static double ThreadSeconds() {
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

// The least and the most that an operation of a kind takes, and of which call.
struct Extremes {
  double least = INFINITY, most = 0;
  std::string least_call, most_call;

  void Add(double ratio, const std::string& call) {
    if (ratio < least) least = ratio, least_call = call;
    if (ratio > most) most = ratio, most_call = call;
  }
};

class OperationBench {
 public:
  OperationBench() : plain_(Kind::kDotProduct, DType::kF32, kPlain, MaskKind::kNone) {
    const absl::StatusOr<Cost> cost = attention::Measure(plain_.call(), 1);
    if (!cost.ok()) Die(cost.status());
    plain_cost_ = *cost;
  }

  Extremes Run(Kind kind) {
    Extremes extremes;
    for (const Case& c : kCases) {
      if (c.block != 0 && kind != Kind::kStrided) continue;
      for (size_t mask = 0; mask < std::size(kMaskNames); ++mask) {
        for (const WeightsWanted weights : {WeightsWanted::kNone, WeightsWanted::kPerHead}) {
          Time(kind, c, static_cast<MaskKind>(mask), weights, extremes);
        }
      }
    }
    return extremes;
  }

 private:
  void Time(Kind kind, const Case& c, MaskKind mask, WeightsWanted weights, Extremes& extremes) {
    CostCall test(kind, DType::kF32, c, mask);
    test.call().need_weights = weights;
    const absl::StatusOr<Cost> cost = attention::Measure(test.call(), 1);
    if (!cost.ok()) return;  // the kind has no such mask, or no weights
    extremes.Add(Ratio(test.call(), *cost),
                 absl::StrCat(c.name, ", mask ", kMaskNames[static_cast<size_t>(mask)],
                              weights == WeightsWanted::kNone ? "" : ", weights"));
  }

  // How much longer an operation of `call` takes than one of plain attention; the first of several
  // tries that is within the mark.
  double Ratio(const Call& call, const Cost& cost) {
    const double mark = absl::GetFlag(FLAGS_mark);
    double ratio = 0;
    for (int i = 0; i < absl::GetFlag(FLAGS_tries); ++i) {
      ratio = SecondsOfOperation(call, cost) / SecondsOfOperation(plain_.call(), plain_cost_);
      if (ratio <= mark && ratio >= 1 / mark) break;
    }
    return ratio;
  }

  double SecondsOfOperation(const Call& call, const Cost& cost) {
    return stopwatch_.Seconds(call, cost) / static_cast<double>(cost.operations);
  }

  Stopwatch stopwatch_;
  CostCall plain_;
  Cost plain_cost_;
};

int Main() {
  OperationBench bench;
  const double mark = absl::GetFlag(FLAGS_mark);
  bool within = true;
  std::printf("%-18s %6s %6s  (mark %.2f to %.2f)\n", "kind", "least", "most", 1 / mark, mark);
  for (const Kind kind : kKinds) {
    const Extremes extremes = bench.Run(kind);
    within = within && extremes.most <= mark && extremes.least >= 1 / mark;
    std::printf("%-18s %6.2f %6.2f  least: %s; most: %s\n", attention::FindOperator(kind)->name,
                extremes.least, extremes.most, extremes.least_call.c_str(),
                extremes.most_call.c_str());
  }
  return within ? 0 : 1;
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("times an operation of every kind of attention");
  absl::ParseCommandLine(argc, argv);
  return attendant::bench::Main();
}
