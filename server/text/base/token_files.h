// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernels/io/json_file.h"

namespace attendant {

// The file, if there is one; else an object without fields.
absl::StatusOr<JsonNode> ReadOptionalJson(const std::string& path);

// special_tokens_map.json, an older file: it counts for transformers where `config`, the folder's
// tokenizer_config.json, has no added_tokens_decoder. Else an object without fields.
absl::StatusOr<JsonNode> ReadSpecialTokensMap(const std::string& directory, const JsonNode& config);

}  // namespace attendant
