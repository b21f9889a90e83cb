// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Fields of config.json that heads of several kinds read. Errors are those of JsonNode.
namespace attendant {

class JsonNode;
class TensorStore;

// The first of `architectures`; empty where there is none.
absl::StatusOr<std::string> FirstArchitecture(const JsonNode& config);

// The number of labels of a head: of `id2label`, else the rows of the tensor `out`.weight, else 2.
// INVALID_ARGUMENT if `id2label` is empty.
absl::StatusOr<int64_t> CountLabels(const JsonNode& config, absl::string_view out,
                                    const TensorStore& store);

// The names of `count` labels: of `id2label`, else LABEL_0 and so on. INVALID_ARGUMENT if
// `id2label` lacks one.
absl::StatusOr<std::vector<std::string>> ReadLabels(const JsonNode& config, int64_t count);

// INVALID_ARGUMENT, beginning with `source`, where a token's vector would have so many `dims` that
// the rows of a batch take more memory than any model is worth.
absl::Status CheckVectorDims(absl::string_view source, int64_t dims);

}  // namespace attendant
