// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

// JSON, appended to a text piece by piece. The caller writes the braces and commas between fields.
namespace attendant {

// The text of the longest number, and its comma.
inline constexpr int64_t kJsonFloatBytes = 16;

// In quotes. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(absl::string_view value, std::string& json);
// The shortest text that reads as the same f32; null for what JSON has no number for.
void AppendJsonFloat(float value, std::string& json);
// "[1,0.5]"
void AppendJsonFloats(std::span<const float> values, std::string& json);
void AppendJsonIntegers(std::span<const int32_t> values, std::string& json);
void AppendJsonIntegers(std::span<const int64_t> values, std::string& json);

}  // namespace attendant
