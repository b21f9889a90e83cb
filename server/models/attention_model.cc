// SPDX-License-Identifier: Apache-2.0
#include "server/models/attention_model.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "kernels/attention/attention.h"
#include "kernels/backends/backends.h"
#include "kernels/core/arena.h"
#include "kernels/io/attention_module.h"
#include "kernels/io/json_file.h"
#include "server/batching/operation_runner.h"

namespace attendant {
namespace {

class AttentionObserver final : public BatchObserver {
 public:
  explicit AttentionObserver(ModelMetrics& metrics) : metrics_(metrics) {}

  void OnBatch(int64_t tokens, int64_t /*sequences*/, int64_t requests,
               absl::Duration /*compute*/) override {
    metrics_.ObserveBatch(tokens, requests);
  }
  void OnRejected(RejectReason reason) override {
    metrics_.CountRejected(RejectReasonName(reason));
  }
  void OnQueueChanged(int64_t queued_tokens, int64_t queued_requests) override {
    metrics_.SetQueue(queued_tokens, queued_requests);
  }

 private:
  ModelMetrics& metrics_;
};

// Modules compute on the CPU, in f32 or bf16. Other formats are for encoders: modules then take
// what is fastest here among theirs.
absl::StatusOr<DType> ModuleDType(const ModelOptions& options) {
  absl::StatusOr<std::unique_ptr<Backend>> backend = MakeBackend("cpu", options.backend_options);
  if (!backend.ok()) return backend.status();
  const bool ours = options.dtype == "f32" || options.dtype == "bf16";
  return ChooseDType(ours ? options.dtype : "auto", **backend);
}

void StartServing(const ModelOptions& options, ServerMetrics& metrics, const Executor& executor,
                  AttentionModel& model) {
  model.limits = options.attention;
  model.metrics = &metrics.ForModel(model.name);
  model.observer = std::make_unique<AttentionObserver>(*model.metrics);
  std::vector<std::unique_ptr<Runner>> runners;
  for (const ThreadTeam& team : options.replicas) {
    model.threads = std::max(model.threads, team.threads);
    runners.push_back(std::make_unique<OperationRunner>(team));
  }
  BatcherOptions batcher = options.batcher;
  batcher.max_batch_tokens = options.attention.max_tokens;
  batcher.max_batch_sequences = 1;
  batcher.max_queue_delay = absl::ZeroDuration();  // nothing that comes later could join
  model.batcher = std::make_unique<Batcher>(batcher, std::move(runners), *model.observer, executor);
}

// One sequence of two tokens, all zeros.
absl::Status WarmUp(const attention::Module& module, const ThreadTeam& team) {
  constexpr int64_t kLen = 2;
  const ModuleConfig& config = module.config();
  const int64_t widest = std::max({config.hidden, config.key_dim, config.value_dim});
  std::vector<float> zeros(static_cast<size_t>(kLen * widest));
  const auto rows = [&zeros](int64_t dim) {
    return attention::InputRows::TokensFirst(reinterpret_cast<const std::byte*>(zeros.data()), 1,
                                             dim, kLen);
  };
  const attention::Call call{.kind = module.kind(),
                             .dtype = module.dtype(),
                             .queries = attention::Sequences::Dense(1, kLen),
                             .keys = attention::Sequences::Dense(1, kLen),
                             .query = rows(config.hidden),
                             .key = rows(config.key_dim),
                             .value = rows(config.value_dim),
                             .module = &module};
  const absl::StatusOr<attention::Cost> cost = attention::Measure(call, team.threads);
  if (!cost.ok()) return cost.status();
  // An arena hands out whole multiples of its alignment.
  Arena scratch(static_cast<size_t>(cost->scratch_bytes) + Arena::kAlignment);
  std::vector<std::byte> out(static_cast<size_t>(cost->out_bytes));
  ThreadPool pool(team);
  return attention::Run(
      call, pool,
      {scratch.Allocate<std::byte>(cost->scratch_bytes), static_cast<size_t>(cost->scratch_bytes)},
      {.out = attention::OutputRows::TokensFirst(out.data(), 1, cost->out_dim, kLen)});
}

}  // namespace

std::unique_ptr<AttentionModel> MakeAttention(const ModelOptions& options, ServerMetrics& metrics,
                                              const Executor& executor) {
  auto model = std::make_unique<AttentionModel>();
  model->name = std::string(kAttentionName);
  StartServing(options, metrics, executor, *model);
  return model;
}

bool HoldsAttentionModule(const std::string& directory) {
  const absl::StatusOr<JsonNode> config = ReadJsonFile(directory + "/config.json");
  return config.ok() && config->Has("type") && !config->Has("model_type");
}

absl::StatusOr<std::unique_ptr<AttentionModel>> LoadAttentionModel(const ModelSource& source,
                                                                   const ModelOptions& options,
                                                                   ServerMetrics& metrics,
                                                                   const Executor& executor) {
  const absl::Time start = absl::Now();
  absl::StatusOr<DType> dtype = ModuleDType(options);
  if (!dtype.ok()) return dtype.status();
  absl::StatusOr<ModuleCheckpoint> checkpoint = LoadAttentionModule(source.directory);
  if (!checkpoint.ok()) return checkpoint.status();
  absl::StatusOr<std::unique_ptr<const attention::Module>> module =
      attention::MakeModule(checkpoint->config, std::move(checkpoint->weights), *dtype);
  if (!module.ok()) return module.status();
  absl::Status warm = WarmUp(**module, options.replicas.front());
  if (!warm.ok()) return warm;
  auto model = std::make_unique<AttentionModel>();
  model->name = source.name;
  model->module = *std::move(module);
  StartServing(options, metrics, executor, *model);
  model->load_time = absl::Now() - start;
  model->metrics->SetLoaded({.dtype = std::string(DTypeName(*dtype)),
                             .backend = "attention",
                             .isa = std::string(model->module->isa()),
                             .load_time = model->load_time,
                             .weight_bytes = model->module->weight_bytes()});
  return model;
}

}  // namespace attendant
