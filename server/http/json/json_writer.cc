// SPDX-License-Identifier: Apache-2.0
#include "server/http/json/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

void AppendCharacter(unsigned char c, std::string& json) {
  switch (c) {
    case '"':
      json += "\\\"";
      return;
    case '\\':
      json += "\\\\";
      return;
    case '\n':
      json += "\\n";
      return;
    case '\r':
      json += "\\r";
      return;
    case '\t':
      json += "\\t";
      return;
    default:
      if (c < 0x20) {
        absl::StrAppend(&json, "\\u", absl::Hex(c, absl::kZeroPad4));
      } else {
        json.push_back(static_cast<char>(c));
      }
  }
}

}  // namespace

void AppendJsonString(absl::string_view value, std::string& json) {
  json.push_back('"');
  while (true) {
    const std::optional<size_t> wrong = FindInvalidUtf8(value);
    for (const char c : value.substr(0, wrong.value_or(value.size()))) {
      AppendCharacter(static_cast<unsigned char>(c), json);
    }
    if (!wrong) break;
    json.append(kReplacement.data(), kReplacement.size());
    value.remove_prefix(*wrong + 1);
  }
  json.push_back('"');
}

int64_t JsonStringBytes(absl::string_view value) {
  constexpr int64_t kQuotes = 2;
  constexpr absl::string_view kShortEscapes = "\"\\\n\r\t";
  const bool replaces = FindInvalidUtf8(value).has_value();
  int64_t bytes = kQuotes;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (kShortEscapes.find(c) != absl::string_view::npos) {
      bytes += 2;
    } else if (byte < 0x20) {
      bytes += 6;  // "\u001f"
    } else {
      bytes += byte >= 0x80 && replaces ? static_cast<int64_t>(kReplacement.size()) : 1;
    }
  }
  return bytes;
}

int64_t JsonStringBytes(std::span<const std::string> values) {
  int64_t bytes = 0;
  for (const std::string& value : values) bytes += JsonStringBytes(value);
  return bytes;
}

void AppendJsonFloat(float value, std::string& json) {
  if (!std::isfinite(value)) {
    json += "null";
    return;
  }
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  json.append(text, end.ptr);
}

void AppendJsonFloats(std::span<const float> values, std::string& json) {
  json.reserve(json.size() + values.size() * static_cast<size_t>(kJsonFloatBytes));
  AppendJsonArray(values, json, [&json](float value) { AppendJsonFloat(value, json); });
}

void AppendJsonRows(std::span<const float> values, size_t columns, std::string& json) {
  json.push_back('[');
  for (size_t i = 0; i < values.size(); i += columns) {
    if (i > 0) json.push_back(',');
    AppendJsonFloats(values.subspan(i, columns), json);
  }
  json.push_back(']');
}

void AppendJsonIntegers(std::span<const int32_t> values, std::string& json) {
  AppendJsonArray(values, json, [&json](int32_t value) { absl::StrAppend(&json, value); });
}

void AppendJsonIntegers(std::span<const int64_t> values, std::string& json) {
  AppendJsonArray(values, json, [&json](int64_t value) { absl::StrAppend(&json, value); });
}

}  // namespace attendant
