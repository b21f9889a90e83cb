// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/engine.h"

#include <numeric>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/backends/backends.h"
#include "kernels/core/threads/cpu_budget.h"
#include "kernels/core/threads/cpu_placement.h"
#include "kernels/core/threads/cpu_topology.h"
#include "kernels/checkpoints/checkpoint.h"
#include "tests/bench/matmul_ceiling.h"
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

EncoderConfig NamedShape(const std::string& shape, int64_t max_positions) {
  if (shape == "minilm") {
    return {6, 12, 384, 1536, 30522, max_positions, 2, 1e-12f, Activation::kGeluErf};
  }
  if (shape == "bert-base") {
    return {12, 12, 768, 3072, 30522, max_positions, 2, 1e-12f, Activation::kGeluErf};
  }
  Die(absl::InvalidArgumentError(absl::StrCat("--shape ", shape, ": give minilm or bert-base")));
}

Checkpoint Load(const Engine::Options& options) {
  if (!options.model.empty()) return OrDie(LoadCheckpoint(options.model));
  const EncoderConfig config = NamedShape(options.shape, options.max_positions);
  return {config, RandomWeights(config, 1)};
}

ThreadTeam Team(const Engine::Options& options) {
  if (!options.pin_threads) return options.threads;
  const CpuBudget budget = ReadCpuBudget();
  return PlaceReplicas(budget, ReadCpuDomains(budget.cpus),
                       {.threads = options.threads, .replicas = 1, .pin = PinThreads::kOn})
      .replicas.front();
}

}  // namespace

Engine::Engine(const Options& options)
    : options_(options), backend_(OrDie(MakeBackend("cpu", {.cpu_isa = options.cpu_isa}))) {
  const DType dtype = OrDie(ChooseDType(options.dtype, *backend_));
  Checkpoint checkpoint = Load(options);
  encoder_ = OrDie(backend_->Prepare(checkpoint.config, std::move(checkpoint.weights), dtype));
  session_ = OrDie(encoder_->NewSession(
      {.max_batch_tokens = options.max_batch_tokens, .max_batch_sequences = kMaxBatchSequences},
      Team(options)));
  session_->PlaceCaller();
}

const float* Engine::Run(const PackedBatch& batch) {
  static const std::vector<SequenceOutputs> wanted(kMaxBatchSequences,
                                                   {.pooling = Pooling::kMean, .normalize = true});
  Outputs outputs;
  const OutputSpec spec{{wanted.data(), static_cast<size_t>(batch.batch())}};
  if (absl::Status status = session_->Run(batch, spec, outputs); !status.ok()) Die(status);
  return outputs.pooled.data();
}

Engine::Rate Engine::MeasureRate(const std::vector<int64_t>& lens) {
  const auto batches = MakeBatches(config(), lens, options_.max_batch_tokens);
  Run(batches.front());
  const double begin = Now(), cpu_begin = CpuSeconds();
  const double seconds = SecondsPerCall(options_.seconds, [&] {
    for (const PackedBatch& batch : batches) Run(batch);
  });
  const double busy_cpus = (CpuSeconds() - cpu_begin) / (Now() - begin);
  const double rate = static_cast<double>(std::reduce(lens.begin(), lens.end())) / seconds;
  return {rate, rate / busy_cpus};
}

std::vector<double> Engine::Latencies(int64_t len) {
  const auto batches = MakeBatches(config(), {len}, options_.max_batch_tokens);
  Run(batches.front());
  return SecondsOfCalls(options_.seconds, [&] { Run(batches.front()); });
}

std::vector<float> Engine::Embed(std::span<const int32_t> ids) {
  std::vector<int32_t> positions(ids.size()), segments(ids.size(), 0);
  std::iota(positions.begin(), positions.end(), 0);
  PackedBatch batch;
  batch.Append(ids, positions, segments);
  const float* pooled = Run(batch);
  return {pooled, pooled + config().hidden};
}

double Engine::Ceiling() const {
  return MatmulCeiling(config(), info().dtype, options_.threads, options_.seconds / 4);
}

}  // namespace attendant::bench
