// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "kernels/io/json_file.h"
#include "kernels/io/json_folder.h"

namespace attendant {

// special_tokens_map.json, an older file: it counts for transformers where `config`, the folder's
// tokenizer_config.json, has no added_tokens_decoder. Else an object without fields.
absl::StatusOr<JsonNode> ReadSpecialTokensMap(const JsonFolder& folder, const JsonNode& config);

}  // namespace attendant
