// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/models.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/heads/head.h"
#include "server/rpc/kserve/task_tensors.h"

namespace attendant {
namespace {

constexpr absl::string_view kPlatform = "attendant_encoder";
constexpr absl::string_view kBackend = "attendant";

void FillTensor(const TensorSpec& spec, inference::ModelMetadataResponse::TensorMetadata& tensor) {
  tensor.set_name(std::string(spec.name));
  tensor.set_datatype(std::string(spec.datatype));
  tensor.add_shape(-1);
  for (const int64_t dim : spec.dims) tensor.add_shape(dim);
}

void FillInput(const TensorSpec& spec, inference::ModelInput& input) {
  input.set_name(std::string(spec.name));
  input.set_data_type(spec.data_type);
  input.mutable_dims()->Add(spec.dims.begin(), spec.dims.end());
  input.set_optional(spec.optional);
}

void FillOutput(const TensorSpec& spec, inference::ModelOutput& output) {
  output.set_name(std::string(spec.name));
  output.set_data_type(spec.data_type);
  output.mutable_dims()->Add(spec.dims.begin(), spec.dims.end());
}

void FillDuration(const DurationSum& sum, inference::StatisticDuration& duration) {
  duration.set_count(sum.count);
  duration.set_ns(static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(sum.total))));
}

// Clients compare these words.
const char* IndexState(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kReady:
    case ModelState::kIdle:
      return "READY";
    case ModelState::kUnloaded:
    case ModelState::kFailed:
    case ModelState::kLost:
      return "UNAVAILABLE";
    case ModelState::kUnloading:
    case ModelState::kDraining:
      return "UNLOADING";
  }
  return "UNKNOWN";
}

std::string IndexReason(const ModelStatus& status) {
  if (status.state == ModelState::kUnloaded) return "unloaded";
  if (status.state == ModelState::kIdle) {
    return absl::StrCat("idle: the next request loads it", status.error.ok() ? "" : "; ",
                        status.error.message());
  }
  if (status.state != ModelState::kReady || status.error.ok()) {
    return std::string(status.error.message());
  }
  return absl::StrCat("serves on, the last load failed: ", status.error.message());
}

// Of the head on tokens that the name stands for, where the model has it.
std::optional<int64_t> ColumnsOf(const EncoderFacts& facts, ServedName kind) {
  const std::optional<TaskKind> task = TaskOf(kind);
  return task.has_value() ? facts.task_columns[static_cast<size_t>(*task)] : std::nullopt;
}

std::vector<ServedName> NamesOf(const EncoderFacts& facts) {
  if (!facts.takes_text) return {ServedName::kIds, ServedName::kEncoder};
  std::vector<ServedName> names = {ServedName::kText, ServedName::kIds, ServedName::kEncoder};
  if (facts.labels > 0) names.push_back(ServedName::kScores);
  for (const ServedName kind :
       {ServedName::kSparse, ServedName::kMasks, ServedName::kTokens, ServedName::kMultiVectors}) {
    if (ColumnsOf(facts, kind).has_value()) names.push_back(kind);
  }
  return names;
}

// NAME of a model without a tokenizer is no name of it, nor is NAME.scores without a classifier,
// nor NAME.sparse without such a head.
absl::Status CheckKind(absl::string_view name, ServedName kind, const EncoderFacts& facts) {
  if (TakesTexts(kind) && !facts.takes_text) {
    return absl::NotFoundError(
        absl::StrCat("model ", Quote(name), " has no tokenizer: use '.ids' or '.encoder'"));
  }
  if (const std::optional<TaskKind> task = TaskOf(kind)) {
    if (ColumnsOf(facts, kind).has_value()) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(
        "no model ", Quote(name), ": the model has no head that makes ", TaskName(*task)));
  }
  if (kind != ServedName::kScores || facts.labels > 0) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no model ", Quote(name), ": the model has no classifier"));
}

// The registry knows the model by another name than the client.
absl::Status WithName(const absl::Status& status, absl::string_view name, absl::string_view base) {
  if (!absl::IsNotFound(status) || name == base) return status;
  return absl::NotFoundError(absl::StrCat("no model ", Quote(name), ": ", status.message()));
}

}  // namespace

bool TakesTexts(ServedName kind) {
  return kind != ServedName::kIds && kind != ServedName::kEncoder;
}

std::vector<TensorSpec> InputSpecs(ServedName kind) {
  if (TakesTexts(kind)) {
    return {{.name = "text",
             .datatype = "BYTES",
             .data_type = inference::TYPE_STRING,
             .dims = {kind == ServedName::kScores ? -1 : 1}}};
  }
  TensorSpec ids{
      .name = "input_ids", .datatype = "INT64", .data_type = inference::TYPE_INT64, .dims = {-1}};
  TensorSpec mask = ids;
  mask.name = "attention_mask";
  mask.optional = true;
  TensorSpec segments = mask;
  segments.name = "token_type_ids";
  return {ids, mask, segments};
}

std::vector<TensorSpec> OutputSpecs(const KServeModelInfo& model) {
  if (TaskOf(model.kind).has_value()) return TaskOutputSpecs(model);
  TensorSpec output{.name = "sentence_embedding",
                    .datatype = "FP32",
                    .data_type = inference::TYPE_FP32,
                    .dims = {model.embedding_dims}};
  if (model.kind == ServedName::kEncoder) {
    output.name = "last_hidden_state";
    output.dims = {-1, model.hidden};
  }
  if (model.kind == ServedName::kScores) {
    output.name = "scores";
    output.dims = {model.labels};
  }
  return {output};
}

std::string TensorNames(const std::vector<TensorSpec>& specs) {
  return absl::StrJoin(specs, ", ", [](std::string* out, const TensorSpec& spec) {
    absl::StrAppend(out, spec.name);
  });
}

void FillServerMetadata(const std::string& version, inference::ServerMetadataResponse& metadata) {
  metadata.set_name(std::string(kBackend));
  metadata.set_version(version);
  for (const char* extension : {"binary_tensor_data", "model_configuration", "parameters",
                                "schedule_policy", "statistics"}) {
    metadata.add_extensions(extension);
  }
}

void ToProto(const KServeModelInfo& model, inference::ModelMetadataResponse& metadata) {
  metadata.set_name(model.name);
  for (const std::string& version : model.versions) metadata.add_versions(version);
  metadata.set_platform(std::string(kPlatform));
  for (const TensorSpec& spec : InputSpecs(model.kind)) FillTensor(spec, *metadata.add_inputs());
  for (const TensorSpec& spec : OutputSpecs(model)) FillTensor(spec, *metadata.add_outputs());
}

void ToProto(const KServeModelInfo& model, inference::ModelConfig& config) {
  config.set_name(model.name);
  config.set_platform(std::string(kPlatform));
  config.set_backend(std::string(kBackend));
  config.mutable_version_policy()->mutable_latest()->set_num_versions(
      static_cast<uint32_t>(model.versions.size()));
  config.set_max_batch_size(static_cast<int32_t>(
      std::min<int64_t>(model.max_batch_size, std::numeric_limits<int32_t>::max())));
  for (const TensorSpec& spec : InputSpecs(model.kind)) FillInput(spec, *config.add_input());
  for (const TensorSpec& spec : OutputSpecs(model)) FillOutput(spec, *config.add_output());
  inference::ModelDynamicBatching& batching = *config.mutable_dynamic_batching();
  batching.set_priority_levels(kPriorityLevels);
  batching.set_default_priority_level(kDefaultPriorityLevel);
  config.mutable_model_transaction_policy()->set_decoupled(false);
}

void ToProto(const KServeModelInfo& model, const ModelStatisticsSnapshot& snapshot,
             inference::ModelStatistics& statistics) {
  statistics.set_name(model.name);
  statistics.set_version(model.version);
  statistics.set_last_inference(
      static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMillis(snapshot.last_inference))));
  statistics.set_inference_count(snapshot.inference_count);
  statistics.set_execution_count(snapshot.execution_count);
  inference::InferStatistics& infer = *statistics.mutable_inference_stats();
  FillDuration(snapshot.success, *infer.mutable_success());
  FillDuration(snapshot.fail, *infer.mutable_fail());
  FillDuration(snapshot.queue, *infer.mutable_queue());
  FillDuration(snapshot.compute_input, *infer.mutable_compute_input());
  FillDuration(snapshot.compute_infer, *infer.mutable_compute_infer());
  FillDuration(snapshot.compute_output, *infer.mutable_compute_output());
  for (const auto& [sequences, batch] : snapshot.batches) {
    inference::InferBatchStatistics& entry = *statistics.add_batch_stats();
    entry.set_batch_size(static_cast<uint64_t>(sequences));
    FillDuration(batch.compute_infer, *entry.mutable_compute_infer());
  }
}

absl::StatusOr<KServeModelRef> KServeModels::Find(absl::string_view name,
                                                  absl::string_view version) const {
  const auto [base, kind] = SplitServedName(name);
  absl::StatusOr<std::shared_ptr<EncoderModel>> model = registry_.Find(base, version);
  if (!model.ok()) return WithName(model.status(), name, base);
  const EncoderFacts facts = (*model)->Facts();
  ATTENDANT_RETURN_IF_ERROR(CheckKind(name, kind, facts));
  KServeModelRef ref;
  ref.model = *std::move(model);
  ref.model_statistics = &KServeStatistics::Of(*ref.model);
  ref.info = {.name = std::string(name),
              .kind = kind,
              .version = absl::StrCat(ref.model->version),
              .hidden = facts.hidden,
              .embedding_dims = facts.embedding_dims,
              .labels = facts.labels,
              .task_columns = ColumnsOf(facts, kind).value_or(0),
              .max_sequence_tokens = facts.max_sequence_tokens,
              .max_batch_size = max_batch_size_};
  return ref;
}

absl::StatusOr<ModelStatus> KServeModels::FindStatus(absl::string_view name,
                                                     absl::string_view version) const {
  const auto [base, kind] = SplitServedName(name);
  absl::StatusOr<ModelStatus> status = registry_.Describe(base, version);
  if (!status.ok()) return WithName(status.status(), name, base);
  ATTENDANT_RETURN_IF_ERROR(CheckKind(name, kind, *status->facts));
  return status;
}

absl::StatusOr<KServeModelInfo> KServeModels::Describe(absl::string_view name,
                                                       absl::string_view version) const {
  const auto [base, kind] = SplitServedName(name);
  ATTENDANT_ASSIGN_OR_RETURN(const ModelStatus status, FindStatus(name, version));
  KServeModelInfo info = MakeInfo(status, kind);
  info.versions = VersionsOf(base);
  return info;
}

std::vector<std::string> KServeModels::VersionsOf(absl::string_view name) const {
  std::vector<std::string> versions;
  for (const ModelStatus& status : registry_.List()) {
    if (status.name == name && status.Serves()) versions.push_back(absl::StrCat(status.version));
  }
  return versions;
}

KServeModelInfo KServeModels::MakeInfo(const ModelStatus& status, ServedName kind) const {
  return {.name = JoinServedName(status.name, kind),
          .kind = kind,
          .version = absl::StrCat(status.version),
          .hidden = status.facts->hidden,
          .embedding_dims = status.facts->embedding_dims,
          .labels = status.facts->labels,
          .task_columns = ColumnsOf(*status.facts, kind).value_or(0),
          .max_sequence_tokens = status.facts->max_sequence_tokens,
          .max_batch_size = max_batch_size_};
}

absl::Status KServeModels::FillStatistics(absl::string_view name, absl::string_view version,
                                          inference::ModelStatisticsResponse& response) const {
  const auto add = [&](const ModelStatus& status, ServedName kind) {
    EncoderModel* const encoder = status.encoder();  // null: it is idle
    const ModelStatisticsSnapshot snapshot = encoder == nullptr
                                                 ? ModelStatisticsSnapshot()
                                                 : KServeStatistics::Of(*encoder)[kind].Snapshot();
    ToProto(MakeInfo(status, kind), snapshot, *response.add_model_stats());
  };
  if (!name.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const ModelStatus status, FindStatus(name, version));
    if (!version.empty()) {
      add(status, SplitServedName(name).second);
      return absl::OkStatus();
    }
  }
  for (const ModelStatus& status : registry_.List()) {
    if (!status.Serves() || !status.facts) continue;
    for (const ServedName kind : NamesOf(*status.facts)) {
      if (name.empty() || name == JoinServedName(status.name, kind)) add(status, kind);
    }
  }
  return absl::OkStatus();
}

void KServeModels::FillIndex(bool ready_only, inference::RepositoryIndexResponse& index) const {
  for (const ModelStatus& status : registry_.List()) {
    if (status.is_module) continue;  // this protocol has no words for it
    if (ready_only && !status.Serves()) continue;
    std::vector<std::string> names;
    if (!status.facts) {
      names.push_back(status.name);
    } else {
      for (const ServedName kind : NamesOf(*status.facts)) {
        names.push_back(JoinServedName(status.name, kind));
      }
    }
    for (std::string& name : names) {
      auto& entry = *index.add_models();
      entry.set_name(std::move(name));
      entry.set_version(absl::StrCat(status.version));
      entry.set_state(IndexState(status.state));
      entry.set_reason(IndexReason(status));
    }
  }
}

}  // namespace attendant
