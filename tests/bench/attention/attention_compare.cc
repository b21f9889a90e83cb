// SPDX-License-Identifier: Apache-2.0
// Times every kind of attention and measures its memory, length by length. A line of JSON for each:
//
//   {"kind", "title", "formula", "len", "seconds": median of the calls, "calls",
//    "scratch_bytes", "weights_bytes": what the operator says, "peak_bytes": how much the process
//    grew}
//   {"kind", "title", "formula", "len", "cut": "why it was not run"}
//
// compare.sh makes a table and a plot of them.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "kernels/attention/registry.h"
#include "kernels/core/arena.h"
#include "kernels/core/threads/cpu_budget.h"
#include "kernels/cpu/simd/denormals.h"
#include "tests/bench/attention/compare_case.h"
#include "tests/bench/timing.h"

ABSL_FLAG(std::string, kinds, "", "names of the kinds, with commas; empty: all but transformer");
ABSL_FLAG(std::string, lengths, "32,64,128,256,512,1024,2048,4096,8192,16384",
          "lengths, ascending");
ABSL_FLAG(std::string, dtype, "f32", "f32 or bf16");
ABSL_FLAG(int, threads, 0, "threads; 0: as many as the process may use");
ABSL_FLAG(int64_t, heads, 8, "heads");
ABSL_FLAG(int64_t, head_dim, 64, "dims of a head, and units of a tanh");
ABSL_FLAG(double, seconds, 0.5, "calls are repeated for so long");
ABSL_FLAG(double, time_budget, 10, "seconds: no call that is expected to take longer");
ABSL_FLAG(double, memory_budget, 2.5, "GiB: no call that takes more beside its operands");

namespace attendant::bench {
namespace {

// A line of /proc/self/status, in bytes; 0 where it cannot be read.
int64_t ProcessBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == field && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// From here on the peak is that of what follows. False where the system does not have it.
bool ResetPeak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return clear.good();
}

struct Measured {
  attention::Cost cost;
  double seconds = 0;
  size_t calls = 0;
  int64_t peak_bytes = 0;
};

Measured MeasureCase(CompareCase& test, ThreadPool& pool, const attention::Cost& cost) {
  Measured measured{.cost = cost};
  malloc_trim(0);
  const bool has_peak = ResetPeak();
  const int64_t before = ProcessBytes("VmRSS:");
  Arena scratch(cost.scratch_bytes);
  Arena weights(cost.weights_bytes);
  const std::span<std::byte> bytes(scratch.Allocate<std::byte>(cost.scratch_bytes),
                                   static_cast<size_t>(cost.scratch_bytes));
  const attention::Outputs outputs =
      test.OutputsTo(cost.weights_bytes == 0 ? nullptr : weights.Allocate<float>(1));
  const auto run = [&] {
    if (absl::Status s = attention::Run(test.call(), pool, bytes, outputs); !s.ok()) Die(s);
  };
  run();
  if (has_peak) measured.peak_bytes = std::max<int64_t>(ProcessBytes("VmHWM:") - before, 0);
  const std::vector<double> times = SecondsOfCalls(absl::GetFlag(FLAGS_seconds), run);
  measured.seconds = times[times.size() / 2];
  measured.calls = times.size();
  return measured;
}

void PrintHead(const attention::Operator& op, int64_t len) {
  std::printf("{\"kind\": \"%s\", \"title\": \"%s\", \"formula\": \"%s\", \"len\": %lld, ", op.name,
              op.title, op.formula, static_cast<long long>(len));
}

void PrintCut(const attention::Operator& op, int64_t len, const std::string& why) {
  PrintHead(op, len);
  std::printf("\"cut\": \"%s\"}\n", why.c_str());
  std::fflush(stdout);
}

// One kind over all lengths. What is beyond a budget is not run; the time is that of the length
// before, times the square of what it grew by: no kind grows faster.
void CompareKind(const attention::Operator& op, const std::vector<int64_t>& lengths,
                 ThreadPool& pool) {
  const double time_budget = absl::GetFlag(FLAGS_time_budget);
  const double memory_budget = absl::GetFlag(FLAGS_memory_budget);
  const DType dtype = absl::GetFlag(FLAGS_dtype) == "bf16" ? DType::kBf16 : DType::kF32;
  int64_t last_len = 0;
  double last_seconds = 0;
  for (int64_t len : lengths) {
    absl::StatusOr<std::unique_ptr<CompareCase>> test =
        CompareCase::Create(op.kind, {.dtype = dtype,
                                      .len = len,
                                      .heads = absl::GetFlag(FLAGS_heads),
                                      .head_dim = absl::GetFlag(FLAGS_head_dim)});
    if (!test.ok()) Die(test.status());
    const absl::StatusOr<attention::Cost> cost =
        attention::Measure((*test)->call(), pool.threads());
    if (!cost.ok()) Die(cost.status());
    const double gib = static_cast<double>(cost->scratch_bytes + cost->weights_bytes) / (1 << 30);
    if (gib > memory_budget) {
      PrintCut(op, len, absl::StrFormat("%.1f GiB", gib));
      continue;
    }
    const double growth =
        last_len == 0 ? 0 : static_cast<double>(len) / static_cast<double>(last_len);
    const double expected = last_seconds * growth * growth;
    if (expected > time_budget) {
      PrintCut(op, len, absl::StrFormat("%.0f s", expected));
      continue;
    }
    const Measured measured = MeasureCase(**test, pool, *cost);
    last_len = len;
    last_seconds = measured.seconds;
    PrintHead(op, len);
    std::printf(
        "\"seconds\": %.9f, \"calls\": %zu, \"scratch_bytes\": %lld, \"weights_bytes\": %lld, "
        "\"peak_bytes\": %lld}\n",
        measured.seconds, measured.calls, static_cast<long long>(cost->scratch_bytes),
        static_cast<long long>(cost->weights_bytes), static_cast<long long>(measured.peak_bytes));
    std::fflush(stdout);
  }
}

int Main() {
  std::vector<int64_t> lengths;
  for (absl::string_view word : absl::StrSplit(absl::GetFlag(FLAGS_lengths), ',')) {
    int64_t len = 0;
    if (!absl::SimpleAtoi(word, &len) || len < 1 || (!lengths.empty() && len <= lengths.back())) {
      Die(absl::InvalidArgumentError(
          absl::StrCat("'", word, "' is no length above the one before")));
    }
    lengths.push_back(len);
  }
  const std::string names = absl::GetFlag(FLAGS_kinds);
  std::vector<const attention::Operator*> operators;
  if (names.empty()) {
    for (const attention::Operator* op : attention::Operators()) {
      if (op->kind != attention::Kind::kTransformer) operators.push_back(op);
    }
  } else {
    for (absl::string_view name : absl::StrSplit(names, ',')) {
      const attention::Operator* op = attention::FindOperator(name);
      if (op == nullptr || op->kind == attention::Kind::kTransformer) {
        Die(absl::InvalidArgumentError(
            absl::StrCat("there is nothing to compare called '", name, "'")));
      }
      operators.push_back(op);
    }
  }
  // Freed blocks go back to the system at once, so that the next one's peak is its own.
  mallopt(M_MMAP_THRESHOLD, 1 << 16);
  const int threads = absl::GetFlag(FLAGS_threads);
  const cpu::ScopedDenormalFlush flush;
  ThreadPool pool(threads > 0 ? threads : ReadCpuBudget().threads, cpu::FlushDenormals);
  for (const attention::Operator* op : operators) CompareKind(*op, lengths, pool);
  return 0;
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Compares the kinds of attention over lengths.");
  absl::ParseCommandLine(argc, argv);
  return attendant::bench::Main();
}
