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

// The models as KServe clients see them: names, tensors, metadata, statistics.
namespace attendant {

// KServe clients number priorities from 1, the highest; 0 stands for the default. The server's
// priorities run from -100 to 100, higher first: priority = kDefaultPriorityLevel - level. The
// batcher lowers those above --max_priority, by default 0, to that.
inline constexpr uint64_t kPriorityLevels = 201;
inline constexpr uint64_t kDefaultPriorityLevel = 101;

// What KServe clients are told of a version of a model, under one of its names.
struct KServeModelInfo {
  std::string name;  // as the client says it: NAME, NAME.ids or NAME.encoder
  ServedName kind = ServedName::kText;
  std::string version = "1";
  std::vector<std::string> versions = {"1"};  // all that serve
  int64_t hidden = 0;
  int64_t max_sequence_tokens = 0;
  int64_t max_batch_size = 0;
};

// A model under one of its KServe names. Who has it shares in the model.
struct KServeModelRef {
  std::shared_ptr<EncoderModel> model;
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

void FillServerMetadata(const std::string& version, inference::ServerMetadataResponse& metadata);
void ToProto(const KServeModelInfo& model, inference::ModelMetadataResponse& metadata);
void ToProto(const KServeModelInfo& model, inference::ModelConfig& config);
void ToProto(const KServeModelInfo& model, const ModelStatisticsSnapshot& snapshot,
             inference::ModelStatistics& statistics);

// The registry's encoders by their KServe names: each version has up to three. Thread-safe.
class KServeModels {
 public:
  // `registry` must outlive this. No request may carry more than `max_batch_size` rows.
  KServeModels(ModelRegistry& registry, int64_t max_batch_size)
      : registry_(registry), max_batch_size_(max_batch_size) {}

  // The model, to infer with. NOT_FOUND: no such model or version, or NAME of a model without a
  // tokenizer. UNAVAILABLE: the model is not ready.
  absl::StatusOr<KServeModelRef> Find(absl::string_view name, absl::string_view version) const;

  // The same of a model that serves, also of one that was unloaded because it was idle.
  absl::StatusOr<KServeModelInfo> Describe(absl::string_view name, absl::string_view version) const;

  // Every name of every loaded version.
  std::vector<KServeModelRef> ListReady() const;

  // Of one model, or of all that are ready for an empty name. Errors as Find's.
  absl::Status FillStatistics(absl::string_view name, absl::string_view version,
                              inference::ModelStatisticsResponse& response) const;

  // Every name of every version; of a model that has never loaded, NAME alone. `ready_only` leaves
  // out what does not serve.
  void FillIndex(bool ready_only, inference::RepositoryIndexResponse& index) const;

 private:
  std::vector<std::string> VersionsOf(absl::string_view name) const;
  KServeModelInfo MakeInfo(const ModelStatus& status, ServedName kind) const;

  ModelRegistry& registry_;
  const int64_t max_batch_size_;
};

}  // namespace attendant
