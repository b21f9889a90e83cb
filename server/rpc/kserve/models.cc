// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/models.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr absl::string_view kPlatform = "attendant_encoder";
constexpr absl::string_view kBackend = "attendant";

struct Suffix {
  absl::string_view text;
  ServedName kind;
};
constexpr std::array<Suffix, 2> kSuffixes = {
    {{".ids", ServedName::kIds}, {".encoder", ServedName::kEncoder}}};

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
      return "READY";
    case ModelState::kFailed:
    case ModelState::kLost:
      return "UNAVAILABLE";
    case ModelState::kDraining:
      return "UNLOADING";
  }
  return "UNKNOWN";
}

}  // namespace

std::vector<TensorSpec> InputSpecs(ServedName kind) {
  if (kind == ServedName::kText) {
    return {
        {.name = "text", .datatype = "BYTES", .data_type = inference::TYPE_STRING, .dims = {1}}};
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

TensorSpec OutputSpecOf(const KServeModelInfo& model) {
  TensorSpec output{.name = "sentence_embedding",
                    .datatype = "FP32",
                    .data_type = inference::TYPE_FP32,
                    .dims = {model.hidden}};
  if (model.kind == ServedName::kEncoder) {
    output.name = "last_hidden_state";
    output.dims = {-1, model.hidden};
  }
  return output;
}

std::pair<absl::string_view, ServedName> SplitServedName(absl::string_view name) {
  for (const Suffix& suffix : kSuffixes) {
    if (absl::EndsWith(name, suffix.text)) {
      return {name.substr(0, name.size() - suffix.text.size()), suffix.kind};
    }
  }
  return {name, ServedName::kText};
}

std::string JoinServedName(absl::string_view model, ServedName kind) {
  for (const Suffix& suffix : kSuffixes) {
    if (kind == suffix.kind) return absl::StrCat(model, suffix.text);
  }
  return std::string(model);
}

absl::Status CheckKServeVersion(absl::string_view name, absl::string_view version) {
  if (version.empty() || version == kKServeVersion) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("model ", Quote(name), " has no version ", Quote(version),
                                          ", only '", kKServeVersion, "'"));
}

void ToProto(const KServeModelInfo& model, inference::ModelMetadataResponse& metadata) {
  metadata.set_name(model.name);
  metadata.add_versions(std::string(kKServeVersion));
  metadata.set_platform(std::string(kPlatform));
  for (const TensorSpec& spec : InputSpecs(model.kind)) FillTensor(spec, *metadata.add_inputs());
  FillTensor(OutputSpecOf(model), *metadata.add_outputs());
}

void ToProto(const KServeModelInfo& model, inference::ModelConfig& config) {
  config.set_name(model.name);
  config.set_platform(std::string(kPlatform));
  config.set_backend(std::string(kBackend));
  config.mutable_version_policy()->mutable_latest()->set_num_versions(1);
  config.set_max_batch_size(static_cast<int32_t>(
      std::min<int64_t>(model.max_batch_size, std::numeric_limits<int32_t>::max())));
  for (const TensorSpec& spec : InputSpecs(model.kind)) FillInput(spec, *config.add_input());
  FillOutput(OutputSpecOf(model), *config.add_output());
  inference::ModelDynamicBatching& batching = *config.mutable_dynamic_batching();
  batching.set_priority_levels(kPriorityLevels);
  batching.set_default_priority_level(kDefaultPriorityLevel);
  config.mutable_model_transaction_policy()->set_decoupled(false);
}

void ToProto(absl::string_view name, const ModelStatisticsSnapshot& snapshot,
             inference::ModelStatistics& statistics) {
  statistics.set_name(std::string(name));
  statistics.set_version(std::string(kKServeVersion));
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
  const absl::StatusOr<EncoderModel*> model = registry_.Find(base);
  if (absl::IsNotFound(model.status())) {
    return absl::NotFoundError(absl::StrCat("no model ", Quote(name)));
  }
  ATTENDANT_RETURN_IF_ERROR(model);
  ATTENDANT_RETURN_IF_ERROR(CheckKServeVersion(name, version));
  if (kind == ServedName::kText && (*model)->tokenizer == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("model ", Quote(name), " has no tokenizer: use '.ids' or '.encoder'"));
  }
  return MakeRef(**model, kind);
}

KServeModelRef KServeModels::MakeRef(EncoderModel& model, ServedName kind) const {
  return {.model = &model,
          .info = {.name = JoinServedName(model.name, kind),
                   .kind = kind,
                   .hidden = model.config().hidden,
                   .max_sequence_tokens = model.max_sequence_tokens,
                   .max_batch_size = max_batch_size_}};
}

std::vector<KServeModelRef> KServeModels::NamesOf(EncoderModel& model) const {
  std::vector<KServeModelRef> names;
  if (model.tokenizer != nullptr) names.push_back(MakeRef(model, ServedName::kText));
  names.push_back(MakeRef(model, ServedName::kIds));
  names.push_back(MakeRef(model, ServedName::kEncoder));
  return names;
}

std::vector<KServeModelRef> KServeModels::ListReady() const {
  std::vector<KServeModelRef> all;
  for (const ModelStatus& status : registry_.List()) {
    if (status.state != ModelState::kReady || status.encoder() == nullptr) continue;
    for (KServeModelRef& found : NamesOf(*status.encoder())) all.push_back(std::move(found));
  }
  return all;
}

void KServeModels::FillIndex(bool ready_only, inference::RepositoryIndexResponse& index) const {
  for (const ModelStatus& status : registry_.List()) {
    if (status.attention() != nullptr) continue;  // this protocol has no words for it
    if (ready_only && status.state != ModelState::kReady) continue;
    std::vector<std::string> names;
    if (status.encoder() == nullptr) {
      names.push_back(status.name);
    } else {
      for (const KServeModelRef& found : NamesOf(*status.encoder()))
        names.push_back(found.info.name);
    }
    for (std::string& name : names) {
      auto& entry = *index.add_models();
      entry.set_name(std::move(name));
      entry.set_version(std::string(kKServeVersion));
      entry.set_state(IndexState(status.state));
      entry.set_reason(std::string(status.error.message()));
    }
  }
}

}  // namespace attendant
