// SPDX-License-Identifier: Apache-2.0
#include "server/models/attention_model.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/core/arena.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "server/batching/runners/operation_runner.h"
#include "server/models/model_observer.h"

namespace attendant {
namespace {

// Null where the machine lacks it: every call then answers UNAVAILABLE.
const cpu::IsaLevel* IsaOf(const ModelOptions& options) {
  return attention::FindIsa(options.attention_isa, options.attention_matmul).value_or(nullptr);
}

void StartServing(const ModelOptions& options, ServerMetrics& metrics, const Executor& executor,
                  AttentionModel& model) {
  model.isa = IsaOf(options);
  model.limits = options.attention;
  model.metrics = metrics.ForModel(model.name);
  model.observer = std::make_unique<ModelObserver>(*model.metrics);
  std::vector<std::unique_ptr<Runner>> runners;
  for (const ThreadTeam& team : options.replicas) {
    model.threads = std::max(model.threads, team.threads);
    runners.push_back(std::make_unique<OperationRunner>(team, options.attention_nice));
  }
  BatcherOptions batcher = options.batcher;
  batcher.max_batch_tokens = QueueUnits(options.attention.max_operations);
  batcher.max_queued_tokens = QueueUnits(options.attention.max_queued_operations);
  batcher.max_batch_sequences = 1;
  batcher.max_queue_delay = absl::ZeroDuration();  // nothing that comes later could join
  model.batcher = std::make_unique<Batcher>(batcher, std::move(runners), *model.observer, executor);
  model.metrics->SetKind(ModelKind::kAttention);
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
  ATTENDANT_ASSIGN_OR_RETURN(const attention::Cost cost, attention::Measure(call, team.threads));
  // An arena hands out whole multiples of its alignment.
  Arena scratch(cost.scratch_bytes + Arena::kAlignment);
  std::vector<std::byte> out(static_cast<size_t>(cost.out_bytes));
  ThreadPool pool(team);
  return attention::Run(
      call, pool,
      {scratch.Allocate<std::byte>(cost.scratch_bytes), static_cast<size_t>(cost.scratch_bytes)},
      {.out = attention::OutputRows::TokensFirst(out.data(), 1, cost.out_dim, kLen)});
}

}  // namespace

int64_t QueueUnits(int64_t operations) {
  constexpr int64_t kUnit = int64_t{1} << 20;
  return CeilDivide(std::max<int64_t>(operations, 1), kUnit);
}

ModelLoadInfo AttentionModel::LoadInfo() const {
  return {.dtype = std::string(DTypeName(module->dtype())),
          .backend = "attention",
          .isa = std::string(module->isa_name()),
          .load_time = load_time,
          .weight_bytes = module->weight_bytes()};
}

std::unique_ptr<AttentionModel> MakeAttention(const ModelOptions& options, ServerMetrics& metrics,
                                              const Executor& executor) {
  auto model = std::make_unique<AttentionModel>();
  model->name = std::string(kAttentionName);
  StartServing(options, metrics, executor, *model);
  return model;
}

absl::StatusOr<std::unique_ptr<AttentionModel>> MakeAttentionModel(const ModelSource& source,
                                                                   ModuleCheckpoint checkpoint,
                                                                   const ModelOptions& options,
                                                                   ServerMetrics& metrics,
                                                                   const Executor& executor) {
  ATTENDANT_RETURN_IF_ERROR(options.module_dtype);
  auto model = std::make_unique<AttentionModel>();
  model->name = source.name;
  model->version = source.version;
  ATTENDANT_ASSIGN_OR_RETURN(model->module,
                             attention::MakeModule(checkpoint.config, std::move(checkpoint.weights),
                                                   *options.module_dtype, IsaOf(options)));
  ATTENDANT_RETURN_IF_ERROR(WarmUp(*model->module, options.replicas.front()));
  StartServing(options, metrics, executor, *model);
  return model;
}

}  // namespace attendant
