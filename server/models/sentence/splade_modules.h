// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "kernels/heads/token_head.h"
#include "server/models/sentence/model_folder.h"

namespace attendant {

class JsonNode;

// The options with which a masked language model makes sparse vectors (SPLADE); unset if
// modules.json has no SPLADE module.
absl::StatusOr<std::optional<SpladeOptions>> FindSplade(const ModelFolder& folder);

// True if the chain of modules.json makes sparse vectors: a Transformer, then SpladePooling.
absl::StatusOr<bool> IsSparseChain(const JsonNode& modules);

}  // namespace attendant
