// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/models/encoder_model.h"
#include "server/models/model_registry.h"
#include "server/rpc/kserve/metadata.h"

namespace attendant {

// A loaded model under one of its KServe names.
struct FoundModel {
  EncoderModel* model = nullptr;
  ServedModel served;

  ModelStatistics& statistics() const { return model->statistics[served.kind]; }
};

// The registry as KServe clients see it: each model by up to three names, in one version.
// Thread-safe.
class KServeModels {
 public:
  // `registry` must outlive this. No request may carry more than `max_batch_size` rows.
  KServeModels(ModelRegistry& registry, int64_t max_batch_size)
      : registry_(registry), max_batch_size_(max_batch_size) {}

  // NOT_FOUND: no such model or version, or NAME of a model without a tokenizer. UNAVAILABLE: not
  // ready.
  absl::StatusOr<FoundModel> Find(absl::string_view name, absl::string_view version) const;

  // Every name of every ready model.
  std::vector<FoundModel> ListReady() const;

  // Every name; of a model that has not loaded, NAME alone. `ready_only` leaves the latter out.
  void FillIndex(bool ready_only, inference::RepositoryIndexResponse& index) const;

 private:
  FoundModel Describe(EncoderModel& model, ServedName kind) const;
  std::vector<FoundModel> NamesOf(EncoderModel& model) const;

  ModelRegistry& registry_;
  const int64_t max_batch_size_;
};

}  // namespace attendant
