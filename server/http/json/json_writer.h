// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

// JSON, appended to a text piece by piece. The caller writes the braces and commas between fields.
namespace attendant {

// The text of the longest number, and its comma.
inline constexpr int64_t kJsonFloatBytes = 16;

// "[a,b]": `append` appends an element.
template <typename Values, typename Append>
void AppendJsonArray(const Values& values, std::string& json, Append append) {
  json.push_back('[');
  bool first = true;
  for (const auto& value : values) {
    if (!first) json.push_back(',');
    first = false;
    append(value);
  }
  json.push_back(']');
}

// Appends `value` as a JSON string in quotes. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(absl::string_view value, std::string& json);
// The bytes that it appends, at most; exact for UTF-8.
int64_t JsonStringBytes(absl::string_view value);
// The bytes of all these strings.
int64_t JsonStringBytes(std::span<const std::string> values);
// The shortest text that reads as the same f32; null for NaN and infinities.
void AppendJsonFloat(float value, std::string& json);
// "[1,0.5]"
void AppendJsonFloats(std::span<const float> values, std::string& json);
// "[[1,0.5],[2,0.25]]": so many of the values in each row. REQUIRES: columns > 0.
void AppendJsonRows(std::span<const float> values, size_t columns, std::string& json);
void AppendJsonIntegers(std::span<const int32_t> values, std::string& json);
void AppendJsonIntegers(std::span<const int64_t> values, std::string& json);

}  // namespace attendant
