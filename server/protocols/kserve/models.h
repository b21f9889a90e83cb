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
#include "server/models/encoder_model.h"
#include "server/models/registry/model_registry.h"
#include "server/protocols/kserve/name_statistics.h"
#include "server/protocols/kserve/served_kinds.h"
#include "server/protocols/kserve/statistics.h"

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
  std::string name;                  // as the client says it: NAME, NAME.ids, ...
  const ServedKind* kind = nullptr;  // never null
  std::string version = "1";
  std::vector<std::string> versions = {"1"};  // all that serve
  EncoderFacts facts{};
  int64_t max_batch_size = 0;

  std::vector<TensorSpec> inputs() const { return kind->inputs(facts); }
  std::vector<TensorSpec> outputs() const { return kind->outputs(facts); }
};

// A model under one of its KServe names. Who has it shares in the model.
struct KServeModelRef {
  std::shared_ptr<EncoderModel> model;
  KServeStatistics* statistics_by_name = nullptr;  // of all its names
  KServeModelInfo info;

  NameStatistics& statistics() const { return (*statistics_by_name)[*info.kind]; }
};

// Name, version, and the extensions that gRPC and HTTP have in common.
void FillServerMetadata(const std::string& version, inference::ServerMetadataResponse& metadata);
void ToProto(const KServeModelInfo& model, inference::ModelMetadataResponse& metadata);
void ToProto(const KServeModelInfo& model, inference::ModelConfig& config);
void ToProto(const KServeModelInfo& model, const NameStatisticsSnapshot& snapshot,
             inference::ModelStatistics& statistics);

// The registry's encoders by their KServe names: each version has several. Thread-safe.
class KServeModels {
 public:
  // `registry` must outlive this. No request may carry more than `max_batch_size` rows.
  KServeModels(ModelRegistry& registry, int64_t max_batch_size)
      : registry_(registry), max_batch_size_(max_batch_size) {}

  // The model, to infer with. NOT_FOUND: no such model or version, or as CheckServed. UNAVAILABLE:
  // the model is not ready.
  absl::StatusOr<KServeModelRef> Find(absl::string_view name, absl::string_view version) const;

  // The description of a model that serves, or that was unloaded because it was idle. Errors as
  // Find's.
  absl::StatusOr<KServeModelInfo> Describe(absl::string_view name, absl::string_view version) const;

  // Fills in the statistics of a version; without a version of all versions that serve; for an
  // empty name of all models. An idle model has zeros. Errors as Describe's.
  absl::Status FillStatistics(absl::string_view name, absl::string_view version,
                              inference::ModelStatisticsResponse& response) const;

  // Every name of every version; of a model that has never loaded, NAME alone. `ready_only` leaves
  // out what does not serve.
  void FillIndex(bool ready_only, inference::RepositoryIndexResponse& index) const;

 private:
  absl::StatusOr<ModelStatus> FindStatus(absl::string_view name, absl::string_view version) const;
  std::vector<std::string> VersionsOf(absl::string_view name) const;
  KServeModelInfo MakeInfo(const ModelStatus& status, const ServedKind& kind) const;

  ModelRegistry& registry_;
  const int64_t max_batch_size_;
};

}  // namespace attendant
