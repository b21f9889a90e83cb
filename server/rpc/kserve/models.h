// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/metrics/model_statistics.h"
#include "server/models/encoder_model.h"
#include "server/models/model_registry.h"

// The models as KServe clients see them: names, tensors, metadata, statistics.
namespace attendant {

// The version that KServe clients see of every model.
inline constexpr absl::string_view kKServeVersion = "1";

// KServe clients number priorities from 1, the highest; 0 stands for the default. The server's
// priorities run from -100 to 100, higher first: priority = kDefaultPriorityLevel - level. The
// batcher lowers those above --max_priority, by default 0, to that.
inline constexpr uint64_t kPriorityLevels = 201;
inline constexpr uint64_t kDefaultPriorityLevel = 101;

// What KServe clients are told of a model, under one of its names.
struct KServeModelInfo {
  std::string name;  // as the client says it: NAME, NAME.ids or NAME.encoder
  ServedName kind = ServedName::kText;
  int64_t hidden = 0;
  int64_t max_sequence_tokens = 0;
  int64_t max_batch_size = 0;
};

// A loaded model under one of its KServe names.
struct KServeModelRef {
  EncoderModel* model = nullptr;
  KServeModelInfo info;

  ModelStatistics& statistics() const { return model->statistics[info.kind]; }
};

// One tensor of a model. The batch dimension comes first and is not in `dims`.
struct TensorSpec {
  absl::string_view name;
  absl::string_view datatype;  // "INT64", as requests and metadata say it
  inference::DataType data_type = inference::TYPE_INVALID;  // the same, as a configuration says it
  std::vector<int64_t> dims;                                // -1: any size
  bool optional = false;
};

std::vector<TensorSpec> InputSpecs(ServedName kind);
TensorSpec OutputSpecOf(const KServeModelInfo& model);  // every served name has one output

// "minilm.ids" <-> {"minilm", kIds}. The part before the suffix views `name`.
std::pair<absl::string_view, ServedName> SplitServedName(absl::string_view name);
std::string JoinServedName(absl::string_view model, ServedName kind);

// NOT_FOUND unless `version` is empty or kKServeVersion.
absl::Status CheckKServeVersion(absl::string_view name, absl::string_view version);

void ToProto(const KServeModelInfo& model, inference::ModelMetadataResponse& metadata);
void ToProto(const KServeModelInfo& model, inference::ModelConfig& config);
void ToProto(absl::string_view name, const ModelStatisticsSnapshot& snapshot,
             inference::ModelStatistics& statistics);

// The registry's encoders by their KServe names: each has up to three, in one version. Thread-safe.
class KServeModels {
 public:
  // `registry` must outlive this. No request may carry more than `max_batch_size` rows.
  KServeModels(ModelRegistry& registry, int64_t max_batch_size)
      : registry_(registry), max_batch_size_(max_batch_size) {}

  // NOT_FOUND: no such model or version, or NAME of a model without a tokenizer. UNAVAILABLE: the
  // model is not ready.
  absl::StatusOr<KServeModelRef> Find(absl::string_view name, absl::string_view version) const;

  // Every name of every ready model.
  std::vector<KServeModelRef> ListReady() const;

  // Every name; of a model that has not loaded, NAME alone. `ready_only` leaves the latter out.
  void FillIndex(bool ready_only, inference::RepositoryIndexResponse& index) const;

 private:
  KServeModelRef MakeRef(EncoderModel& model, ServedName kind) const;
  std::vector<KServeModelRef> NamesOf(EncoderModel& model) const;

  ModelRegistry& registry_;
  const int64_t max_batch_size_;
};

}  // namespace attendant
