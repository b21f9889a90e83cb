// SPDX-License-Identifier: Apache-2.0
// How far the server's cost model is from the times of batches. tests/bench/README.md explains it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "kernels/core/threads/cpu_budget.h"
#include "server/models/warm_up.h"
#include "tests/bench/engine.h"
#include "tests/bench/timing.h"

ABSL_FLAG(std::string, model, "",
          "checkpoint folder; empty: random weights in the shape of --shape");
ABSL_FLAG(std::string, shape, "minilm", "a folder of tests/bench/shapes");
ABSL_FLAG(std::string, dtype, "auto", "auto, f32, bf16 or int8");
ABSL_FLAG(int, threads, 0, "0: what this process may use");
ABSL_FLAG(int, max_batch_tokens, 1024, "token budget of a batch");
ABSL_FLAG(int, batches, 100, "measured");
ABSL_FLAG(int, rounds, 9, "how often each batch is measured");
ABSL_FLAG(int, seed, 1, "of the batches");

namespace attendant::bench {
namespace {

using Lens = std::vector<int64_t>;

// Log-normal lengths, median 48, at most 512; from one sequence to a full batch.
Lens DrawBatch(std::mt19937_64& random, int64_t budget) {
  std::lognormal_distribution<double> draw(std::log(48.0), 0.54);
  const int64_t wanted = std::uniform_int_distribution<int64_t>(1, budget)(random);
  Lens lens;
  for (int64_t tokens = 0; tokens < wanted;) {
    const int64_t len =
        std::min({std::llround(draw(random)) + 1, 512ll, static_cast<long long>(budget - tokens)});
    lens.push_back(len);
    tokens += len;
  }
  return lens;
}

BatchShape ShapeOf(const Lens& lens) {
  BatchShape shape;
  for (const int64_t len : lens) shape.Add(len);
  return shape;
}

absl::Duration Time(Session& session, const Lens& lens) {
  const double start = Now();
  if (absl::Status status = RunZeros(session, lens); !status.ok()) Die(status);
  return absl::Seconds(Now() - start);
}

double At(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

void PrintErrors(const char* name, std::vector<double> errors) {
  std::printf("%-46s %8.1f %% %8.1f %% %8.1f %%\n", name, 100 * At(errors, 0.5),
              100 * At(errors, 0.95), 100 * At(errors, 0.99));
}

struct Measured {
  std::vector<double> at_load, online;  // estimates, one for each round
  std::vector<double> times;
  double median() const {
    std::vector<double> sorted = times;
    return At(sorted, 0.5);
  }
};

// |estimate / time - 1| of all rounds of all batches. `time` gives the one to compare with.
template <typename Estimates, typename Time>
std::vector<double> Errors(const std::vector<Measured>& batches, Estimates estimates, Time time) {
  std::vector<double> errors;
  for (const Measured& batch : batches) {
    for (size_t round = 0; round < batch.times.size(); ++round) {
      errors.push_back(std::abs((batch.*estimates)[round] / time(batch, round) - 1));
    }
  }
  return errors;
}

// Prints the errors of `fit` for batches like those of mixed traffic.
void PrintErrorsOf(const CostModel& fit, Session& session, int64_t budget) {
  std::mt19937_64 random(static_cast<uint64_t>(absl::GetFlag(FLAGS_seed)));
  std::vector<Lens> batches(static_cast<size_t>(absl::GetFlag(FLAGS_batches)));
  for (Lens& lens : batches) lens = DrawBatch(random, budget);
  CostModel corrected = fit;
  std::vector<Measured> measured(batches.size());
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    for (size_t i = 0; i < batches.size(); ++i) {
      const BatchShape shape = ShapeOf(batches[i]);
      const absl::Duration time = Time(session, batches[i]);
      measured[i].times.push_back(absl::ToDoubleSeconds(time));
      measured[i].at_load.push_back(absl::ToDoubleSeconds(fit.Estimate(shape)));
      measured[i].online.push_back(absl::ToDoubleSeconds(corrected.Estimate(shape)));
      corrected.Observe(shape, time);
    }
  }
  const auto single = [](const Measured& batch, size_t round) { return batch.times[round]; };
  const auto median = [](const Measured& batch, size_t) { return batch.median(); };
  std::printf("%-46s %10s %10s %10s\n", "|estimate / time - 1|", "p50", "p95", "p99");
  PrintErrors("as fitted at load", Errors(measured, &Measured::at_load, single));
  PrintErrors("corrected by the batches before", Errors(measured, &Measured::online, single));
  PrintErrors("corrected, to the median of a batch's times",
              Errors(measured, &Measured::online, median));
  PrintErrors("a batch's times, to their median", Errors(measured, &Measured::times, median));
}

void Main() {
  const int threads = absl::GetFlag(FLAGS_threads);
  const int64_t budget = absl::GetFlag(FLAGS_max_batch_tokens);
  Engine engine({.model = absl::GetFlag(FLAGS_model),
                 .shape = absl::GetFlag(FLAGS_shape),
                 .dtype = absl::GetFlag(FLAGS_dtype),
                 .threads = threads == 0 ? ReadCpuBudget().threads : threads,
                 .max_batch_tokens = budget});
  Session& session = engine.session();
  const SessionLimits limits{.max_batch_tokens = budget, .max_batch_sequences = 256};
  const int64_t longest = std::min<int64_t>(512, budget);
  if (absl::Status status = WarmUp(session, limits, longest); !status.ok()) Die(status);
  const double start = Now();
  const absl::StatusOr<CostModel> fit = MeasureCost(session, limits, longest);
  if (!fit.ok()) Die(fit.status());
  const double fit_seconds = Now() - start;
  const auto ms = [&](BatchShape shape) {
    return absl::ToDoubleMilliseconds(fit->Estimate(shape));
  };
  const double fixed = ms({});
  std::printf(
      "%s, %d threads; fitted in %.2f s: --batch_ms=%.3f --sequence_us=%.2f "
      "--token_us=%.2f --square_ns=%.3f\n\n",
      engine.info().isa.c_str(), engine.options().threads, fit_seconds, fixed,
      1e3 * (ms({.sequences = 1}) - fixed), 1e3 * (ms({.tokens = 1}) - fixed),
      ms({.squares = 1'000'000}) - fixed);
  PrintErrorsOf(*fit, session, budget);
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures the error of the cost model.");
  absl::ParseCommandLine(argc, argv);
  attendant::bench::Main();
}
