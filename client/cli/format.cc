// SPDX-License-Identifier: Apache-2.0
#include "client/cli/format.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant::client {
namespace {

// Whether `text` begins with one of U+0080 to U+009F: some terminals obey them.
bool IsC1Control(absl::string_view text) {
  if (text.size() < 2 || text[0] != '\xC2') return false;
  const auto second = static_cast<unsigned char>(text[1]);
  return second >= 0x80 && second < 0xA0;
}

// JSON has them in its strings only, and its library escapes no others.
std::string EscapeControls(absl::string_view json) {
  std::string out;
  for (size_t i = 0; i < json.size(); ++i) {
    const bool c1_control = IsC1Control(json.substr(i));
    if (c1_control) ++i;
    if (c1_control || json[i] == '\x7f') {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(json[i]));
    } else {
      out.push_back(json[i]);
    }
  }
  return out;
}

template <typename Json>
std::string DumpLine(const Json& json) {
  return EscapeControls(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string Dump(const FloatJson& json) { return DumpLine(json); }
std::string Dump(const nlohmann::ordered_json& json) { return DumpLine(json); }

std::string OneLine(absl::string_view text, size_t width) {
  std::string out;
  size_t points = 0;
  size_t cut = 0;  // where the last code point that would have to give way begins
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    if (!continues && points++ + 1 == width) cut = out.size();
    if (!continues && points > width) return absl::StrCat(out.substr(0, cut), "…");
    const bool c1_control = IsC1Control(text.substr(i));
    if (c1_control) ++i;
    out.push_back(c1_control || absl::ascii_iscntrl(static_cast<unsigned char>(c)) ? ' ' : c);
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
  std::vector<std::vector<std::string>> shown = rows;
  for (std::vector<std::string>& row : shown) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = OneLine(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const std::vector<std::string>& row : shown) {
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

bool Before(float score, float other) {
  return score > other || (std::isnan(other) && !std::isnan(score));
}

std::vector<size_t> ByScore(std::span<const float> scores, size_t most) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [scores](size_t a, size_t b) { return Before(scores[a], scores[b]); });
  order.resize(std::min(order.size(), most));
  return order;
}

std::span<const float> Row(const Tensor& tensor, size_t index) {
  const size_t columns = static_cast<size_t>(tensor.shape[1]);
  return std::span(tensor.values).subspan(index * columns, columns);
}

}  // namespace attendant::client
