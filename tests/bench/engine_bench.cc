// SPDX-License-Identifier: Apache-2.0
// Valid tokens per second of the engine alone, beside the matmul ceiling measured in the same run.
// tests/bench/README.md explains the columns.
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/threads/cpu_budget.h"
#include "tests/bench/engine.h"
#include "tests/bench/engine_commands.h"
#include "tests/bench/timing.h"
#include "tests/bench/workload.h"

ABSL_FLAG(std::string, model, "",
          "checkpoint folder; empty: random weights in the shape of --shape");
ABSL_FLAG(std::string, shape, "minilm",
          "a folder of tests/bench/shapes, or with a slash any folder");
ABSL_FLAG(int, max_positions, 0, "of random weights: the longest sequence; 0: that of the shape");
ABSL_FLAG(std::string, dtype, "f32", "auto, f32, bf16 or int8");
ABSL_FLAG(std::string, cpu_isa, "auto",
          "the highest instruction set to use: auto, avx2, avx2_vnni, avx512, avx512_vnni, "
          "avx512_bf16 or amx");
ABSL_FLAG(std::string, matmul, "auto", "who multiplies: auto, onednn or tiles");
ABSL_FLAG(int, threads, 0, "0: what this process may use");
ABSL_FLAG(int, replicas, 1, "sessions that compute batches at the same time and share the threads");
ABSL_FLAG(bool, pin_threads, false, "each thread on a processor of its own");
ABSL_FLAG(int, max_batch_tokens, 4096, "token budget of a batch");
ABSL_FLAG(std::string, pooling, "mean", "mean, cls or last");
ABSL_FLAG(double, seconds, 3, "measured time of each row");
ABSL_FLAG(bool, json, false, "one JSON object a line instead of the table");
ABSL_FLAG(bool, commands, false, "answer commands on standard input (engine_commands.h)");

namespace attendant::bench {
namespace {

struct Row {
  std::string lengths;
  double tokens_per_second = 0;
  double flops = 0;  // a second
  double ceiling_share = 0;
};

Pooling PoolingFromFlags() {
  const std::string name = absl::GetFlag(FLAGS_pooling);
  if (name == "mean") return Pooling::kMean;
  if (name == "cls") return Pooling::kCls;
  if (name == "last") return Pooling::kLast;
  Die(absl::InvalidArgumentError(absl::StrCat("--pooling is \"", name, "\"")));
}

Engine::Options OptionsFromFlags() {
  const int threads = absl::GetFlag(FLAGS_threads);
  return {.model = absl::GetFlag(FLAGS_model),
          .shape = absl::GetFlag(FLAGS_shape),
          .max_positions = absl::GetFlag(FLAGS_max_positions),
          .dtype = absl::GetFlag(FLAGS_dtype),
          .cpu_isa = absl::GetFlag(FLAGS_cpu_isa),
          .matmul = absl::GetFlag(FLAGS_matmul),
          .threads = threads == 0 ? ReadCpuBudget().threads : threads,
          .replicas = absl::GetFlag(FLAGS_replicas),
          .pin_threads = absl::GetFlag(FLAGS_pin_threads),
          .max_batch_tokens = absl::GetFlag(FLAGS_max_batch_tokens),
          .seconds = absl::GetFlag(FLAGS_seconds),
          .pooling = PoolingFromFlags()};
}

Row Measure(const std::string& name, Engine& engine, const std::vector<int64_t>& lens,
            double ceiling) {
  const double rate = engine.MeasureRate(lens).tokens_per_second;
  const double seconds = static_cast<double>(std::reduce(lens.begin(), lens.end())) / rate;
  const double flops = Flops(engine.config(), lens, engine.options().pooling) / seconds;
  return {name, rate, flops, flops / ceiling};
}

void PrintTable(const std::vector<Row>& rows, const Engine& engine, double ceiling) {
  std::printf("%s, %s, %d threads, %d replicas; matmul ceiling %.0f GFLOP/s\n\n",
              engine.info().isa.c_str(), std::string(DTypeName(engine.info().dtype)).c_str(),
              engine.options().threads, engine.options().replicas, ceiling / 1e9);
  std::printf("%-14s %18s %12s %16s\n", "lengths", "valid tokens/s", "GFLOP/s", "of the ceiling");
  for (const Row& row : rows) {
    std::printf("%-14s %18.0f %12.0f %14.1f %%\n", row.lengths.c_str(), row.tokens_per_second,
                row.flops / 1e9, 100 * row.ceiling_share);
  }
}

void PrintJson(const std::vector<Row>& rows, const Engine& engine, double ceiling) {
  for (const Row& row : rows) {
    std::printf(
        "{\"lengths\": \"%s\", \"tokens_per_second\": %.1f, \"gflops\": %.1f, "
        "\"ceiling_share\": %.4f, "
        "\"ceiling_gflops\": %.1f, \"isa\": \"%s\", \"threads\": %d, \"replicas\": %d}\n",
        row.lengths.c_str(), row.tokens_per_second, row.flops / 1e9, row.ceiling_share,
        ceiling / 1e9, engine.info().isa.c_str(), engine.options().threads,
        engine.options().replicas);
  }
}

void Main() {
  Engine engine(OptionsFromFlags());
  if (absl::GetFlag(FLAGS_commands)) return AnswerCommands(engine);

  const double ceiling = engine.Ceiling();
  std::vector<Row> rows;
  for (int64_t len : {16, 32, 128, 512}) {
    const std::vector<int64_t> lens(static_cast<size_t>(8192 / len), len);
    rows.push_back(Measure(absl::StrCat("uniform ", len), engine, lens, ceiling));
  }
  rows.push_back(Measure("mixed", engine, MixedLens(), ceiling));
  absl::GetFlag(FLAGS_json) ? PrintJson(rows, engine, ceiling) : PrintTable(rows, engine, ceiling);
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures the engine's valid tokens per second.");
  absl::ParseCommandLine(argc, argv);
  attendant::bench::Main();
}
