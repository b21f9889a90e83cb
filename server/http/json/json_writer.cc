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

template <typename Values, typename Append>
void AppendArray(const Values& values, std::string& json, Append append) {
  json.push_back('[');
  bool first = true;
  for (const auto& value : values) {
    if (!first) json.push_back(',');
    first = false;
    append(value);
  }
  json.push_back(']');
}

}  // namespace

void AppendJsonString(absl::string_view value, std::string& json) {
  constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";
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
  AppendArray(values, json, [&json](float value) { AppendJsonFloat(value, json); });
}

void AppendJsonIntegers(std::span<const int32_t> values, std::string& json) {
  AppendArray(values, json, [&json](int32_t value) { absl::StrAppend(&json, value); });
}

void AppendJsonIntegers(std::span<const int64_t> values, std::string& json) {
  AppendArray(values, json, [&json](int64_t value) { absl::StrAppend(&json, value); });
}

}  // namespace attendant
