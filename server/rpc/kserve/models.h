// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
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
#include "server/models/served_name.h"
#include "server/rpc/kserve/statistics.h"

// The models as KServe clients see them: names, tensors, metadata, statistics.
namespace attendant {

// KServe clients number priorities from 1, the highest; 0 stands for the default. The server's
// priorities run from -100 to 100, higher first: priority = kDefaultPriorityLevel - level. The
// batcher lowers those above --max_priority, by default 0, to that.
inline constexpr uint64_t kPriorityLevels = 201;
inline constexpr uint64_t kDefaultPriorityLevel = 101;
inline constexpr char kPriorityName[] = "priority";  // the parameter
// REQUIRES: `priority` from -100 to 100.
constexpr int64_t PriorityLevel(int priority) {
  return static_cast<int64_t>(kDefaultPriorityLevel) - priority;
}

// A version of a model under one of its names, as KServe clients see it.
struct KServeModelInfo {
  std::string name;  // as the client says it: NAME, NAME.ids, ...
  ServedName kind = ServedName::kText;
  std::string version = "1";
  std::vector<std::string> versions = {"1"};  // all that serve
  int64_t hidden = 0;
  int64_t embedding_dims = 0;
  int64_t labels = 0;
  int64_t task_columns = 0;  // of a row of what the name's head on tokens makes
  int64_t max_sequence_tokens = 0;
  int64_t max_batch_size = 0;
};

// A model under one of its KServe names. Who has it shares in the model.
struct KServeModelRef {
  std::shared_ptr<EncoderModel> model;
  KServeStatistics* model_statistics = nullptr;  // of all its names
  KServeModelInfo info;

  ModelStatistics& statistics() const { return (*model_statistics)[info.kind]; }
};

// The texts of a row of NAME.scores: one, or a pair.
inline constexpr int64_t kMaxScoredTexts = 2;

// One tensor of a model. The batch dimension comes first and is not in `dims`.
struct TensorSpec {
  absl::string_view name;
  absl::string_view datatype;  // "INT64", as requests and metadata say it
  inference::DataType data_type = inference::TYPE_INVALID;  // the same, as a configuration says it
  std::vector<int64_t> dims;                                // -1: any size
  bool optional = false;
};

bool TakesTexts(ServedName kind);  // else ids
std::vector<TensorSpec> InputSpecs(ServedName kind);
// One of most names; several of those of heads on tokens (task_tensors.h).
std::vector<TensorSpec> OutputSpecs(const KServeModelInfo& model);
std::string TensorNames(const std::vector<TensorSpec>& specs);  // "input_ids, attention_mask"

// Name, version, and the extensions that gRPC and HTTP have in common.
void FillServerMetadata(const std::string& version, inference::ServerMetadataResponse& metadata);
void ToProto(const KServeModelInfo& model, inference::ModelMetadataResponse& metadata);
void ToProto(const KServeModelInfo& model, inference::ModelConfig& config);
void ToProto(const KServeModelInfo& model, const ModelStatisticsSnapshot& snapshot,
             inference::ModelStatistics& statistics);

// The registry's encoders by their KServe names: each version has several. Thread-safe.
class KServeModels {
 public:
  // `registry` must outlive this. No request may carry more than `max_batch_size` rows.
  KServeModels(ModelRegistry& registry, int64_t max_batch_size)
      : registry_(registry), max_batch_size_(max_batch_size) {}

  // The model, to infer with. NOT_FOUND: no such model or version, NAME of a model without a
  // tokenizer, or NAME.scores of one without a classifier. UNAVAILABLE: the model is not ready.
  absl::StatusOr<KServeModelRef> Find(absl::string_view name, absl::string_view version) const;

  // The same of a model that serves, also of one that was unloaded because it was idle.
  absl::StatusOr<KServeModelInfo> Describe(absl::string_view name, absl::string_view version) const;

  // Of a version, without one of all versions that serve, and for an empty name of all models;
  // zeros of one that is idle. Errors as Describe's.
  absl::Status FillStatistics(absl::string_view name, absl::string_view version,
                              inference::ModelStatisticsResponse& response) const;

  // Every name of every version; of a model that has never loaded, NAME alone. `ready_only` leaves
  // out what does not serve.
  void FillIndex(bool ready_only, inference::RepositoryIndexResponse& index) const;

 private:
  absl::StatusOr<ModelStatus> FindStatus(absl::string_view name, absl::string_view version) const;
  std::vector<std::string> VersionsOf(absl::string_view name) const;
  KServeModelInfo MakeInfo(const ModelStatus& status, ServedName kind) const;

  ModelRegistry& registry_;
  const int64_t max_batch_size_;
};

}  // namespace attendant
