// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/json/json_view.h"
#include "server/limits/limits.h"
#include "server/requests/encode_types.h"

namespace attendant {

using Sequences = std::vector<std::variant<std::string, IdsInput>>;

// Reads what OpenAI and TEI take: a text, a list of texts, a list of token ids, or a list of such
// lists. INVALID_ARGUMENT names the field, and its element. Counts before it copies.
absl::Status SequencesFromJson(JsonView request, absl::string_view field,
                               const EncodeLimits& limits, Sequences& sequences);

// A list of texts alone.
absl::Status TextsFromJson(JsonView request, absl::string_view field, const EncodeLimits& limits,
                           Sequences& sequences);

// Reads a number of dimensions; 0 where the field is absent. INVALID_ARGUMENT below 1.
absl::Status DimensionsFromJson(JsonView request, absl::string_view field, int64_t& dimensions);

}  // namespace attendant
