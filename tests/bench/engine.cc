// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/engine.h"

#include <numeric>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/backends/backends.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/threads/cpu_budget.h"
#include "kernels/core/threads/cpu_placement.h"
#include "kernels/core/threads/cpu_topology.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "tests/bench/matmul_ceiling.h"
#include "tests/bench/streams.h"
#include "tests/bench/timing.h"
#include "tests/bench/workload.h"
#include "tests/support/checkpoint.h"

namespace attendant::bench {
namespace {

constexpr int64_t kMaxBatchSequences = 4096;

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) Die(value.status());
  return *std::move(value);
}

Checkpoint Load(const Engine::Options& options) {
  if (!options.model.empty()) return OrDie(LoadCheckpoint(options.model));
  const bool is_path = absl::StrContains(options.shape, '/');
  EncoderConfig config = OrDie(ReadEncoderConfig(
      is_path ? options.shape : absl::StrCat(ATTENDANT_BENCH_SHAPES, "/", options.shape)));
  if (options.max_positions > 0) config.max_positions = options.max_positions;
  return {config, RandomWeights(config, 1, Spread::kBell)};
}

std::vector<ThreadTeam> Teams(const Engine::Options& options) {
  const int replicas = options.replicas;
  if (replicas < 1 || options.threads % replicas != 0) {
    Die(absl::InvalidArgumentError(absl::StrCat("--replicas ", replicas, ": give a divisor of ",
                                                options.threads, ", the number of threads")));
  }
  if (!options.pin_threads) {
    return std::vector(static_cast<size_t>(replicas), ThreadTeam(options.threads / replicas));
  }
  const CpuBudget budget = ReadCpuBudget();
  return PlaceReplicas(budget, ReadCpuDomains(budget.cpus),
                       {.threads = options.threads, .replicas = replicas, .pin = PinThreads::kOn})
      .replicas;
}

}  // namespace

Engine::Engine(const Options& options)
    : options_(options),
      wanted_(kMaxBatchSequences, {.pooling = options.pooling, .normalize = true}),
      backend_(OrDie(MakeBackend("cpu", {.cpu_isa = options.cpu_isa, .matmul = options.matmul}))) {
  const DType dtype = OrDie(ChooseDType(options.dtype, *backend_));
  Checkpoint checkpoint = Load(options);
  encoder_ = OrDie(backend_->Prepare(checkpoint.config, std::move(checkpoint.weights), dtype));
  const SessionLimits limits{.max_batch_tokens = options.max_batch_tokens,
                             .max_batch_sequences = kMaxBatchSequences};
  for (const ThreadTeam& team : Teams(options)) {
    sessions_.push_back(OrDie(encoder_->NewSession(limits, team)));
  }
  session().PlaceCaller();
}

const float* Engine::Run(Session& session, const PackedBatch& batch) const {
  Outputs outputs;
  const OutputSpec spec{{wanted_.data(), static_cast<size_t>(batch.batch())}};
  if (absl::Status status = session.Run(batch, spec, outputs); !status.ok()) Die(status);
  return outputs.pooled.data();
}

Engine::Rate Engine::MeasureRate(const std::vector<int64_t>& lens) {
  const auto batches = MakeBatches(config(), lens, options_.max_batch_tokens);
  const double begin = Now(), cpu_begin = CpuSeconds();
  const double passes_per_second = PassesPerSecond(
      sessions_.size(), batches.size(), options_.seconds,
      {.begin = [&](size_t replica) { sessions_[replica]->PlaceCaller(); },
       .run = [&](size_t replica, size_t i) { Run(*sessions_[replica], batches[i]); }});
  const double busy_cpus = (CpuSeconds() - cpu_begin) / (Now() - begin);
  const double rate =
      passes_per_second * static_cast<double>(std::reduce(lens.begin(), lens.end()));
  return {rate, rate / busy_cpus};
}

std::vector<double> Engine::Latencies(int64_t len) {
  const auto batches = MakeBatches(config(), {len}, options_.max_batch_tokens);
  Run(session(), batches.front());
  return SecondsOfCalls(options_.seconds, [&] { Run(session(), batches.front()); });
}

std::vector<float> Engine::Embed(std::span<const int32_t> ids) {
  std::vector<int32_t> positions(ids.size()), segments(ids.size(), 0);
  std::iota(positions.begin(), positions.end(), 0);
  PackedBatch batch;
  batch.Append(ids, positions, segments);
  const float* pooled = Run(session(), batch);
  return {pooled, pooled + config().hidden};
}

double Engine::Ceiling() const {
  return MatmulCeiling(config(), info().dtype, OrDie(cpu::ParseCpuIsa(options_.cpu_isa)),
                       options_.threads, options_.seconds / 4);
}

}  // namespace attendant::bench
