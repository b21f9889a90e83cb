// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// On one line. Bytes that are no UTF-8 are replaced.
std::string Dump(const FloatJson& json);
std::string Dump(const nlohmann::ordered_json& json);

// `text` on one line: control characters become spaces, and what goes beyond `width` code points is
// cut, with … as the last one.
std::string OneLine(absl::string_view text, size_t width);

// The first `shown` values: "[ 0.0123 -0.4567 … ]".
std::string FirstValues(std::span<const float> values, size_t shown);

// Columns aligned to the left, two spaces between them, the first row being the header.
std::string Table(const std::vector<std::vector<std::string>>& rows);

// 1234567 -> "1,234,567"
std::string Thousands(int64_t value);

// Row `index` of a tensor [rows, columns].
std::span<const float> Row(const Tensor& tensor, size_t index);

}  // namespace attendant::client
