// SPDX-License-Identifier: Apache-2.0
// Valid tokens per second of the engine alone, beside the matmul ceiling measured in the same run.
// tests/bench/README.md explains the columns.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "kernels/backends/backends.h"
#include "kernels/core/cpu_budget.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/packed_linear.h"
#include "kernels/io/checkpoint.h"
#include "tests/support/checkpoint.h"

ABSL_FLAG(std::string, model, "",
          "checkpoint folder; empty: random weights in the shape of --shape");
ABSL_FLAG(std::string, shape, "minilm", "minilm or bert-base");
ABSL_FLAG(std::string, dtype, "f32", "auto, f32, bf16 or int8");
ABSL_FLAG(int, threads, 0, "0: what this process may use");
ABSL_FLAG(int, max_batch_tokens, 4096, "token budget of a batch");
ABSL_FLAG(double, seconds, 3, "measured time of each row");
ABSL_FLAG(bool, json, false, "one JSON object a line instead of the table");

namespace attendant {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "engine_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

EncoderConfig NamedShape(const std::string& shape) {
  if (shape == "minilm") return {6, 12, 384, 1536, 30522, 512, 2, 1e-12f, Activation::kGeluErf};
  if (shape == "bert-base") return {12, 12, 768, 3072, 30522, 512, 2, 1e-12f, Activation::kGeluErf};
  Die(absl::InvalidArgumentError(absl::StrCat("--shape ", shape, ": give minilm or bert-base")));
}

Checkpoint ModelUnderTest() {
  const std::string model = absl::GetFlag(FLAGS_model);
  if (model.empty()) {
    const EncoderConfig config = NamedShape(absl::GetFlag(FLAGS_shape));
    return {config, RandomWeights(config, 1)};
  }
  auto checkpoint = LoadCheckpoint(model);
  if (!checkpoint.ok()) Die(checkpoint.status());
  return *std::move(checkpoint);
}

// Multiply-adds count as two. Linear layers, and both products of attention for a sequence of
// `len`.
double LinearFlops(const EncoderConfig& config) {
  const auto hidden = static_cast<double>(config.hidden), ffn = static_cast<double>(config.ffn);
  return 2 * static_cast<double>(config.layers) * (4 * hidden * hidden + 2 * hidden * ffn);
}
double AttentionFlops(const EncoderConfig& config, int64_t len) {
  return 4 * static_cast<double>(config.layers * config.hidden * len);
}

// Lengths of real traffic: log-normal, median 48, mean 55.6, cut to [4, 512].
std::vector<int64_t> MixedLens() {
  std::mt19937 random(2024);
  std::lognormal_distribution<double> distribution(std::log(48.0),
                                                   std::sqrt(2 * std::log(55.6 / 48)));
  std::vector<int64_t> lens;
  while (lens.size() < 192) {
    lens.push_back(std::clamp<int64_t>(std::llround(distribution(random)), 4, 512));
  }
  return lens;
}

// Cuts sequences into batches in arrival order, as the server does.
std::vector<PackedBatch> MakeBatches(const EncoderConfig& config, const std::vector<int64_t>& lens,
                                     int64_t max_tokens) {
  std::mt19937 random(7);
  std::vector<PackedBatch> batches(1);
  for (int64_t len : lens) {
    if (batches.back().tokens() + len > max_tokens) batches.emplace_back();
    std::vector<int32_t> ids, positions, segments(static_cast<size_t>(len), 0);
    for (int32_t i = 0; i < len; ++i) {
      ids.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(config.vocab)));
      positions.push_back(i);
    }
    batches.back().Append(ids, positions, segments);
  }
  return batches;
}

// Repeats `work` until the time is up, after one warm-up; returns seconds per call.
double SecondsPerCall(const std::function<void()>& work) {
  work();
  const double begin = Now();
  int calls = 0;
  do {
    work();
    ++calls;
  } while (Now() - begin < absl::GetFlag(FLAGS_seconds));
  return (Now() - begin) / calls;
}

// FLOP/s of the model's four products alone, `threads` threads each with its own rows.
double MatmulCeiling(const EncoderConfig& config, DType dtype, int threads) {
  constexpr int64_t kRows = 256;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const std::pair<int64_t, int64_t> shapes[] = {{config.hidden, 3 * config.hidden},
                                                {config.hidden, config.hidden},
                                                {config.hidden, config.ffn},
                                                {config.ffn, config.hidden}};
  double flops = 0, seconds = 0;
  for (const auto& [k, n] : shapes) {
    auto matmul = cpu::Matmul::Create(engine, {.dtype = dtype, .k = k, .n = n, .max_rows = kRows});
    if (!matmul.ok()) Die(matmul.status());
    const std::vector<float> weight(static_cast<size_t>(k * n), 0.01f), bias(static_cast<size_t>(n));
    const LinearWeights linear{{weight.data(), {n, k}}, {bias.data(), {n}}};
    const cpu::PackedLinear packed = cpu::PackLinear(*matmul, {&linear});
    std::vector<std::thread> workers;
    std::vector<double> times(static_cast<size_t>(threads));
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        cpu::UseOneThreadPerCall();
        std::vector<float> x(static_cast<size_t>(kRows * k), 0.5f),
            y(static_cast<size_t>(kRows * n));
        std::vector<char> scratchpad(matmul->scratchpad_bytes() + 64);
        cpu::MatmulRunner runner(*matmul, dnnl::stream(engine), scratchpad.data());
        times[static_cast<size_t>(t)] = SecondsPerCall([&] {
          if (!runner.Run(kRows, x.data(), packed.weight, nullptr, y.data())) {
            Die(absl::InternalError("oneDNN could not execute a matmul"));
          }
        });
      });
    }
    for (std::thread& worker : workers) worker.join();
    for (double time : times) seconds += time / threads / threads;
    flops += 2 * static_cast<double>(kRows * k * n);
  }
  return flops / seconds;
}

struct Row {
  std::string lengths;
  double tokens_per_second = 0;
  double ceiling_share = 0;
};

Row Measure(const std::string& name, const PreparedEncoder& encoder, Session& session,
            const std::vector<int64_t>& lens, double ceiling) {
  const auto batches = MakeBatches(encoder.config(), lens, absl::GetFlag(FLAGS_max_batch_tokens));
  const std::vector<SequenceOutputs> wanted(lens.size(),
                                            {.pooling = Pooling::kMean, .normalize = true});
  const double seconds = SecondsPerCall([&] {
    for (const PackedBatch& batch : batches) {
      Outputs outputs;
      const OutputSpec spec{{wanted.data(), static_cast<size_t>(batch.batch())}};
      if (absl::Status status = session.Run(batch, spec, outputs); !status.ok()) Die(status);
    }
  });
  double tokens = 0, flops = 0;
  for (int64_t len : lens) {
    tokens += static_cast<double>(len);
    flops += static_cast<double>(len) *
             (LinearFlops(encoder.config()) + AttentionFlops(encoder.config(), len));
  }
  return {name, tokens / seconds, flops / seconds / ceiling};
}

void Print(const std::vector<Row>& rows, const PreparedInfo& info, double ceiling, int threads) {
  if (absl::GetFlag(FLAGS_json)) {
    for (const Row& row : rows) {
      std::printf(
          "{\"lengths\": \"%s\", \"tokens_per_second\": %.1f, \"ceiling_share\": %.4f, "
          "\"ceiling_gflops\": %.1f, \"isa\": \"%s\", \"threads\": %d}\n",
          row.lengths.c_str(), row.tokens_per_second, row.ceiling_share, ceiling / 1e9,
          info.isa.c_str(), threads);
    }
    return;
  }
  std::printf("%s, %s, %d threads; matmul ceiling %.0f GFLOP/s\n\n", info.isa.c_str(),
              std::string(DTypeName(info.dtype)).c_str(), threads, ceiling / 1e9);
  std::printf("%-14s %18s %16s\n", "lengths", "valid tokens/s", "of the ceiling");
  for (const Row& row : rows) {
    std::printf("%-14s %18.0f %14.1f %%\n", row.lengths.c_str(), row.tokens_per_second,
                100 * row.ceiling_share);
  }
}

void Main() {
  int threads = absl::GetFlag(FLAGS_threads);
  if (threads == 0) threads = ReadCpuBudget().threads;
  Checkpoint checkpoint = ModelUnderTest();
  const EncoderConfig config = checkpoint.config;
  auto backend = MakeBackend("auto");
  if (!backend.ok()) Die(backend.status());
  auto dtype = ChooseDType(absl::GetFlag(FLAGS_dtype), **backend);
  if (!dtype.ok()) Die(dtype.status());
  auto encoder = (*backend)->Prepare(config, std::move(checkpoint.weights), *dtype);
  if (!encoder.ok()) Die(encoder.status());
  auto session = (*encoder)->NewSession(
      {.max_batch_tokens = absl::GetFlag(FLAGS_max_batch_tokens), .max_batch_sequences = 4096},
      threads);
  if (!session.ok()) Die(session.status());

  const double ceiling = MatmulCeiling(config, *dtype, threads);
  std::vector<Row> rows;
  for (int64_t len : {16, 32, 128, 512}) {
    rows.push_back(Measure(absl::StrCat("uniform ", len), **encoder, **session,
                           std::vector<int64_t>(static_cast<size_t>(8192 / len), len), ceiling));
  }
  rows.push_back(Measure("mixed", **encoder, **session, MixedLens(), ceiling));
  Print(rows, (*encoder)->info(), ceiling, threads);
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures the engine's valid tokens per second.");
  absl::ParseCommandLine(argc, argv);
  attendant::Main();
}
