// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_file.h"

// Fields that configurations of several kinds of models share.
namespace attendant {

// UNIMPLEMENTED: the field's `value` is valid, but not one that is `supported`.
absl::Status Unsupported(const JsonNode& json, absl::string_view field, absl::string_view value,
                         absl::string_view supported);

// Unsupported where the field is there and true.
absl::Status CheckFalse(const JsonNode& json, const char* field);

// Unsupported where the field is there and not `only`, likewise the next.
absl::Status CheckText(const JsonNode& json, const char* field, const std::string& only);
absl::Status CheckNumber(const JsonNode& json, const char* field, int64_t only);

// The number in `field`, or `value` as it is where the field is absent. INVALID_ARGUMENT below
// `least`.
absl::Status ReadAtLeast(const JsonNode& json, const char* field, int64_t least, int64_t& value);
// For limits, in which 1e30 often means that there is none.
absl::Status ReadAtLeast(const JsonNode& json, const char* field, double least, double& value);

// The epsilon in `field`, or `epsilon` as it is where the field is absent. INVALID_ARGUMENT outside
// of (0, 1).
absl::Status ReadLayerNormEpsilon(const JsonNode& json, const char* field, double epsilon,
                                  float& to);

}  // namespace attendant
