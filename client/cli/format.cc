// SPDX-License-Identifier: Apache-2.0
#include "client/cli/format.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant::client {

std::string Dump(const FloatJson& json) {
  return json.dump(-1, ' ', false, FloatJson::error_handler_t::replace);
}

std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string OneLine(absl::string_view text, size_t width) {
  std::string out;
  size_t points = 0;
  size_t cut = 0;  // where the last code point that would have to give way begins
  for (char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    if (!continues && points++ + 1 == width) cut = out.size();
    if (!continues && points > width) return absl::StrCat(out.substr(0, cut), "…");
    out.push_back(absl::ascii_iscntrl(static_cast<unsigned char>(c)) ? ' ' : c);
  }
  return out;
}

std::string FirstValues(std::span<const float> values, size_t shown) {
  std::string out = "[";
  for (float value : values.first(std::min(shown, values.size()))) {
    absl::StrAppendFormat(&out, " %7.4f", value);
  }
  absl::StrAppend(&out, values.size() > shown ? " … ]" : " ]");
  return out;
}

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, row[i], std::string(widths[i] - row[i].size() + 2, ' '));
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

std::string Thousands(int64_t value) {
  std::string digits = absl::StrCat(value);
  const int first = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<size_t>(at), 1, ',');
  }
  return digits;
}

std::string CutNote(const SequenceInfo& info) {
  return info.truncated ? absl::StrCat(" (cut from ", info.tokens_seen, ")") : "";
}

std::span<const float> Row(const Tensor& tensor, size_t index) {
  const size_t columns = static_cast<size_t>(tensor.shape[1]);
  return std::span(tensor.values).subspan(index * columns, columns);
}

}  // namespace attendant::client
