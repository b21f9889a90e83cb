// SPDX-License-Identifier: Apache-2.0
#include "server/models/encoder_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/backends/backends.h"
#include "kernels/core/status_macros.h"
#include "server/batching/runners/batch_runner.h"
#include "server/models/inspect/fitting_tokenizer.h"
#include "server/models/model_observer.h"
#include "server/models/sentence/cross_encoder.h"
#include "server/models/sentence/late_interaction.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence/model_prompts.h"
#include "server/models/warm_up.h"

namespace attendant {
namespace {

// One for each session. On a device of its own a session's thread only waits.
std::vector<ThreadTeam> TeamsFor(const BackendDefaults& defaults, const ModelOptions& options) {
  if (defaults.sessions == 0) return options.replicas;
  const int sessions = options.device_sessions > 0 ? options.device_sessions : defaults.sessions;
  return std::vector<ThreadTeam>(static_cast<size_t>(sessions), ThreadTeam(1));
}

// On the CPU; a device has no other users.
void ShareProcessors(const std::string& name, const ModelOptions& options,
                     BatcherOptions& batcher) {
  batcher.slots = options.compute_slots;
  const auto weight = options.model_weights.find(name);
  if (weight != options.model_weights.end()) batcher.weight = weight->second;
}

// Measures the cost of batches on the first session: the others are like it.
absl::StatusOr<std::vector<std::unique_ptr<Runner>>> MakeWarmRunners(
    const BackendDefaults& defaults, const ModelOptions& options, EncoderModel& model,
    CostModel& cost) {
  const SessionLimits limits{.max_batch_tokens = options.batcher.max_batch_tokens,
                             .max_batch_sequences = options.batcher.max_batch_sequences};
  std::vector<std::unique_ptr<Runner>> runners;
  for (const ThreadTeam& team : TeamsFor(defaults, options)) {
    ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                               model.encoder->NewSession(limits, team));
    const absl::Status warm = WarmUp(*session, limits, model.max_sequence_tokens);
    if (!warm.ok()) {
      return absl::Status(warm.code(),
                          absl::StrCat("warm-up in ", DTypeName(model.encoder->info().dtype), ": ",
                                       warm.message()));
    }
    if (runners.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(cost, MeasureCost(*session, limits, model.max_sequence_tokens));
    }
    ATTENDANT_ASSIGN_OR_RETURN(BatchRunner::HeadRunners heads,
                               MakeHeadRunners(model.heads, limits, *session));
    if (runners.empty()) {
      ThreadPool own_pool(1);  // for a session that has none
      ThreadPool& pool = session->pool() == nullptr ? own_pool : *session->pool();
      ATTENDANT_ASSIGN_OR_RETURN(model.heads.row_ns, MeasureHeads(model.heads.heads, heads, limits,
                                                                  model.config().hidden, pool));
    }
    model.arena_bytes += session->arena_bytes();
    for (const auto& head : heads) model.arena_bytes += head->arena_bytes();
    runners.push_back(std::make_unique<BatchRunner>(std::move(session), std::move(heads)));
  }
  return runners;
}

DeviceSample ToSample(const DeviceUse& use) {
  DeviceSample sample{.device = use.device,
                      .name = use.name,
                      .memory_used_bytes = use.memory_used_bytes,
                      .memory_total_bytes = use.memory_total_bytes,
                      .busy_seconds = use.busy_seconds,
                      .group_seconds = {}};
  for (const DeviceUse::Group& group : use.groups) {
    sample.group_seconds.emplace_back(group.name, group.seconds);
  }
  return sample;
}

// While the model lives, its devices are metrics.
void WatchDevices(const EncoderModel& model, ServerMetrics& metrics) {
  if (model.encoder->device_use().empty()) return;
  metrics.AddDeviceSource(model.name, [weak = std::weak_ptr(model.encoder)] {
    std::vector<DeviceSample> samples;
    if (const std::shared_ptr<PreparedEncoder> encoder = weak.lock()) {
      for (const DeviceUse& use : encoder->device_use()) samples.push_back(ToSample(use));
    }
    return samples;
  });
}

absl::Status LoadParts(const ModelFolder& folder, Checkpoint checkpoint, const Backend& backend,
                       const ModelOptions& options, EncoderModel& model) {
  ATTENDANT_ASSIGN_OR_RETURN(const DType dtype, ChooseDType(options.dtype, backend));
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<LateInteraction> late,
                             FindLateInteraction(folder.root, checkpoint.token_heads));
  checkpoint.config.unattended_tokens = late.has_value() && late->has_unattended_tokens();
  ATTENDANT_ASSIGN_OR_RETURN(
      model.encoder, backend.Prepare(checkpoint.config, std::move(checkpoint.weights), dtype));
  model.classifier = std::move(checkpoint.classifier);
  ATTENDANT_RETURN_IF_ERROR(ReadCrossEncoder(folder, model.classifier));
  model.max_sequence_tokens =
      std::min(model.config().max_positions, options.batcher.max_batch_tokens);
  ATTENDANT_ASSIGN_OR_RETURN(model.sentence, ReadSentenceSettings(folder, model.config().hidden,
                                                                  model.max_sequence_tokens));
  ATTENDANT_ASSIGN_OR_RETURN(model.tokenizer,
                             LoadFittingTokenizer(folder.encoder, model.config(), model.sentence));
  ATTENDANT_ASSIGN_OR_RETURN(
      model.heads, MakeModelHeads(folder, std::move(checkpoint.token_heads),
                                  checkpoint.unread_heads, model.tokenizer.get(), *model.encoder));
  model.adapter = options.AdapterOf(model.name);
  if (model.tokenizer == nullptr) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(
      ModelPrompts prompts,
      ReadModelPrompts({.folder = folder,
                        .config = model.config(),
                        .tokenizer = *model.tokenizer,
                        .late = late,
                        .makes_sparse = model.heads.Find(TaskKind::kSparse).has_value(),
                        .max_sequence_tokens = model.max_sequence_tokens,
                        .max_text_tokens = model.sentence.max_text_tokens},
                       model.adapter));
  model.prompts = std::move(prompts.prompts);
  model.lookup = std::move(prompts.lookup);
  return absl::OkStatus();
}

}  // namespace

ModelLoadInfo EncoderModel::LoadInfo() const {
  const PreparedInfo& info = encoder->info();
  const size_t weights = lookup.has_value() ? lookup->weights.size() : 0;
  const auto lookup_bytes = static_cast<int64_t>(weights * sizeof(float));
  return {.dtype = std::string(DTypeName(info.dtype)),
          .backend = info.backend,
          .isa = info.isa,
          .load_time = load_time,
          .weight_bytes = info.weight_bytes + heads.weight_bytes() + lookup_bytes,
          .arena_bytes = arena_bytes};
}

EncoderInfo EncoderModel::Info() const {
  const BatcherOptions& options = batcher->options();
  const PreparedInfo& prepared = encoder->info();
  EncoderInfo info{.backend = prepared.backend,
                   .isa = prepared.isa,
                   .dtype = prepared.dtype,
                   .layers = config().layers,
                   .heads = config().heads,
                   .vocab = config().vocab,
                   .poolings = sentence.poolings,
                   .normalize = sentence.normalize,
                   .labels = std::nullopt,
                   .token_labels = heads.token_labels,
                   .prompt_names = {},
                   .default_prompt_name = prompts.default_name,
                   .max_text_tokens = sentence.max_text_tokens,
                   .max_batch_tokens = options.max_batch_tokens,
                   .max_batch_sequences = options.max_batch_sequences,
                   .max_queued_requests = options.max_queued_requests};
  if (classifier.has_value()) info.labels = classifier->labels;
  for (const auto& prompt : prompts.by_name) info.prompt_names.push_back(prompt.first);
  return info;
}

absl::StatusOr<std::unique_ptr<EncoderModel>> MakeEncoderModel(
    const ModelSource& source, const ModelFolder& folder, Checkpoint checkpoint,
    const Backend& backend, const ModelOptions& options, ServerMetrics& metrics,
    const Executor& executor) {
  auto model = std::make_unique<EncoderModel>();
  model->name = source.name;
  model->version = source.version;
  model->metrics = metrics.ForModel(source.name);
  ATTENDANT_RETURN_IF_ERROR(LoadParts(folder, std::move(checkpoint), backend, options, *model));
  BatcherOptions batcher = options.batcher;
  if (backend.defaults().sessions == 0) ShareProcessors(source.name, options, batcher);
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Runner>> runners,
                             MakeWarmRunners(backend.defaults(), options, *model, batcher.cost));
  model->observer = std::make_unique<ModelObserver>(*model->metrics);
  model->batcher =
      std::make_unique<Batcher>(batcher, std::move(runners), *model->observer, executor);
  model->metrics->SetKind(ModelKind::kEncoder);
  WatchDevices(*model, metrics);
  return model;
}

}  // namespace attendant
