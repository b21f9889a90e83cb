// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/metrics/model_statistics.h"
#include "server/models/encoder_model.h"

namespace attendant {

// The version that KServe clients see of every model.
inline constexpr absl::string_view kKServeVersion = "1";

// What KServe clients are told of a model, under one of its names.
struct ServedModel {
  std::string name;  // as the client says it: NAME, NAME.ids or NAME.encoder
  ServedName kind = ServedName::kText;
  int64_t hidden = 0;
  int64_t max_sequence_tokens = 0;
  int64_t max_batch_size = 0;
};

// One of its tensors. The batch dimension comes first and is not in `dims`.
struct TensorSpec {
  absl::string_view name;
  absl::string_view datatype;  // "INT64", as requests and metadata say it
  inference::DataType data_type = inference::TYPE_INVALID;  // the same, as a configuration says it
  std::vector<int64_t> dims;                                // -1: any size
  bool optional = false;
};

std::vector<TensorSpec> InputSpecs(ServedName kind);
TensorSpec OutputSpecOf(const ServedModel& model);  // every served name has one output

// "minilm.ids" <-> {"minilm", kIds}. The part before the suffix views `name`.
std::pair<absl::string_view, ServedName> SplitServedName(absl::string_view name);
std::string JoinServedName(absl::string_view model, ServedName kind);

// NOT_FOUND unless `version` is empty or kKServeVersion.
absl::Status CheckKServeVersion(absl::string_view name, absl::string_view version);

void FillMetadata(const ServedModel& model, inference::ModelMetadataResponse& metadata);
void FillConfig(const ServedModel& model, inference::ModelConfig& config);
void FillStatistics(absl::string_view name, const ModelStatisticsSnapshot& snapshot,
                    inference::ModelStatistics& statistics);

}  // namespace attendant
