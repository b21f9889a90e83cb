// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/client.h"

namespace attendant::client {

// Keeps the order of its keys, and writes a float with the fewest digits that read back the same.
using FloatJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool,
                                       std::int64_t, std::uint64_t, float>;

// JSON on one line. Invalid UTF-8 is replaced, and control characters are escaped.
std::string Dump(const FloatJson& json);
std::string Dump(const nlohmann::ordered_json& json);

// Code points of a text that a command shows beside its results.
inline constexpr size_t kShownTextWidth = 60;

// `text` on one line of at most `width` code points: control characters become spaces, and a longer
// text ends in …. For all that comes from a server or a file: a terminal obeys control characters.
std::string OneLine(absl::string_view text, size_t width = std::string::npos);

// The first `shown` values: "[ 0.0123 -0.4567 … ]".
std::string FirstValues(std::span<const float> values, size_t shown);

// Rows as lines, each cell as OneLine makes it, their columns aligned to the left with two spaces
// between them.
std::string Table(const std::vector<std::vector<std::string>>& rows);

// 1234567 -> "1,234,567"
std::string Thousands(int64_t value);

// " (cut from 300)" for a sequence that was cut, else nothing.
std::string CutNote(const SequenceInfo& info);

// The sort order of scores: true if `score` comes before `other`. Higher scores first, NaN last.
bool Before(float score, float other);

// Indices of the `most` highest scores, in the order of Before; equal ones in their order.
std::vector<size_t> ByScore(std::span<const float> scores, size_t most);

// Row `index` of a tensor [rows, columns].
std::span<const float> Row(const Tensor& tensor, size_t index);

}  // namespace attendant::client
