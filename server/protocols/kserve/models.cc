// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/models.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

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
const char* IndexState(const ModelStatus& status) {
  switch (status.state) {
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kReady:
    case ModelState::kIdle:
      return "READY";
    case ModelState::kIdleFailed:
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
  if (status.state == ModelState::kIdle) return "idle: the next request loads it";
  if (status.state != ModelState::kReady || status.error.ok()) {
    return std::string(status.error.message());
  }
  return absl::StrCat("serves on, the last load failed: ", status.error.message());
}

// The kinds of a model with these facts, in the order of ServedKinds.
std::vector<const ServedKind*> KindsOf(const EncoderFacts& facts) {
  std::vector<const ServedKind*> kinds;
  for (const ServedKind& kind : ServedKinds()) {
    if (CheckServed("", kind, facts).ok()) kinds.push_back(&kind);
  }
  return kinds;
}

// The registry knows the model by another name than the client.
absl::Status WithName(const absl::Status& status, absl::string_view name, absl::string_view base) {
  if (!absl::IsNotFound(status) || name == base) return status;
  return absl::NotFoundError(absl::StrCat("no model ", Quote(name), ": ", status.message()));
}

}  // namespace

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
  for (const TensorSpec& spec : model.inputs()) FillTensor(spec, *metadata.add_inputs());
  for (const TensorSpec& spec : model.outputs()) FillTensor(spec, *metadata.add_outputs());
}

void ToProto(const KServeModelInfo& model, inference::ModelConfig& config) {
  config.set_name(model.name);
  config.set_platform(std::string(kPlatform));
  config.set_backend(std::string(kBackend));
  config.mutable_version_policy()->mutable_latest()->set_num_versions(
      static_cast<uint32_t>(model.versions.size()));
  config.set_max_batch_size(static_cast<int32_t>(
      std::min<int64_t>(model.max_batch_size, std::numeric_limits<int32_t>::max())));
  for (const TensorSpec& spec : model.inputs()) FillInput(spec, *config.add_input());
  for (const TensorSpec& spec : model.outputs()) FillOutput(spec, *config.add_output());
  inference::ModelDynamicBatching& batching = *config.mutable_dynamic_batching();
  batching.set_priority_levels(kPriorityLevels);
  batching.set_default_priority_level(kDefaultPriorityLevel);
  config.mutable_model_transaction_policy()->set_decoupled(false);
}

void ToProto(const KServeModelInfo& model, const NameStatisticsSnapshot& snapshot,
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
  ATTENDANT_RETURN_IF_ERROR(CheckServed(name, *kind, facts));
  KServeModelRef ref;
  ref.model = *std::move(model);
  ref.statistics_by_name = &KServeStatistics::Of(*ref.model);
  ref.info = {.name = std::string(name),
              .kind = kind,
              .version = absl::StrCat(ref.model->version),
              .facts = facts,
              .max_batch_size = max_batch_size_};
  return ref;
}

absl::StatusOr<ModelStatus> KServeModels::FindStatus(absl::string_view name,
                                                     absl::string_view version) const {
  const auto [base, kind] = SplitServedName(name);
  absl::StatusOr<ModelStatus> status = registry_.Describe(base, version);
  if (!status.ok()) return WithName(status.status(), name, base);
  ATTENDANT_RETURN_IF_ERROR(CheckServed(name, *kind, *status->facts));
  return status;
}

absl::StatusOr<KServeModelInfo> KServeModels::Describe(absl::string_view name,
                                                       absl::string_view version) const {
  const auto [base, kind] = SplitServedName(name);
  ATTENDANT_ASSIGN_OR_RETURN(const ModelStatus status, FindStatus(name, version));
  KServeModelInfo info = MakeInfo(status, *kind);
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

KServeModelInfo KServeModels::MakeInfo(const ModelStatus& status, const ServedKind& kind) const {
  return {.name = kind.NameOf(status.name),
          .kind = &kind,
          .version = absl::StrCat(status.version),
          .facts = *status.facts,
          .max_batch_size = max_batch_size_};
}

absl::Status KServeModels::FillStatistics(absl::string_view name, absl::string_view version,
                                          inference::ModelStatisticsResponse& response) const {
  const auto add = [&](const ModelStatus& status, const ServedKind& kind) {
    EncoderModel* const encoder = status.encoder();  // null: it is idle
    const NameStatisticsSnapshot snapshot = encoder == nullptr
                                                ? NameStatisticsSnapshot()
                                                : KServeStatistics::Of(*encoder)[kind].Snapshot();
    ToProto(MakeInfo(status, kind), snapshot, *response.add_model_stats());
  };
  if (!name.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const ModelStatus status, FindStatus(name, version));
    if (!version.empty()) {
      add(status, *SplitServedName(name).second);
      return absl::OkStatus();
    }
  }
  for (const ModelStatus& status : registry_.List()) {
    if (!status.Serves() || !status.facts) continue;
    for (const ServedKind* kind : KindsOf(*status.facts)) {
      if (name.empty() || name == kind->NameOf(status.name)) add(status, *kind);
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
      for (const ServedKind* kind : KindsOf(*status.facts)) {
        names.push_back(kind->NameOf(status.name));
      }
    }
    for (std::string& name : names) {
      auto& entry = *index.add_models();
      entry.set_name(std::move(name));
      entry.set_version(absl::StrCat(status.version));
      entry.set_state(IndexState(status));
      entry.set_reason(IndexReason(status));
    }
  }
}

}  // namespace attendant
