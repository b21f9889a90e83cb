// SPDX-License-Identifier: Apache-2.0
#include "client/load/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lines.h"
#include "client/utf8.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using TraceJson = nlohmann::json;

constexpr size_t kMaxEntries = 1'000'000;
constexpr int64_t kMaxSequenceTokens = 1 << 20;
constexpr int64_t kMaxTraceTokens = 64 << 20;
constexpr double kMaxTimeMs = 1e12;  // 31 years

absl::Status Malformed(int64_t line, absl::string_view problem) {
  return absl::FailedPreconditionError(absl::StrCat("line ", line, " of the trace ", problem));
}

// A whole number in [1, limit]; 0 for anything else.
int64_t Positive(const TraceJson& object, const char* name, int64_t limit) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return 0;
  const int64_t value = found->get<int64_t>();
  return value >= 1 && value <= limit ? value : 0;
}

absl::StatusOr<TraceEntry> ReadTimestamped(const TraceJson& object, int64_t line) {
  TraceEntry entry;
  const TraceJson& timestamp = object["timestamp"];
  const double ms = timestamp.is_number() ? timestamp.get<double>() : -1;
  if (!(ms >= 0 && ms <= kMaxTimeMs)) {
    return Malformed(line, "has a timestamp that is not a number of milliseconds");
  }
  entry.time = absl::Milliseconds(ms);
  const auto text = object.find("text_input");
  if (text != object.end() && text->is_string()) entry.text = text->get<std::string>();
  if (FindInvalidUtf8(entry.text) != absl::string_view::npos) {
    return Malformed(line, "has a text that is not valid UTF-8");
  }
  entry.tokens = Positive(object, "input_length", kMaxSequenceTokens);
  if (entry.text.empty() && entry.tokens == 0) {
    return Malformed(line, absl::StrCat("has neither a text_input nor an input_length from 1 to ",
                                        kMaxSequenceTokens));
  }
  return entry;
}

// nullopt for a request that computed nothing.
absl::StatusOr<std::optional<TraceEntry>> ReadLogged(const TraceJson& object, absl::Time& origin,
                                                     int64_t line) {
  absl::Time time;
  std::string problem;
  const TraceJson& written = object["time"];
  if (!written.is_string() ||
      !absl::ParseTime(absl::RFC3339_full, written.get<std::string>(), &time, &problem)) {
    return Malformed(line, "has a time that is not one of RFC 3339");
  }
  TraceEntry entry;
  entry.tokens = Positive(object, "tokens", kMaxTraceTokens);
  if (entry.tokens == 0) return std::nullopt;
  entry.sequences = std::max<int64_t>(1, Positive(object, "sequences", entry.tokens));
  if (origin == absl::InfinitePast()) origin = time;
  entry.time = time - origin;  // infinite where absl read "infinite-future"
  if (absl::AbsDuration(entry.time) > absl::Milliseconds(kMaxTimeMs)) {
    return Malformed(line, "has a time that is more than 31 years from the first");
  }
  return entry;
}

absl::Status ReadLine(const std::string& text, int64_t line, absl::Time& origin,
                      std::vector<TraceEntry>& entries) {
  const TraceJson object = TraceJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_object() && object.contains("timestamp")) {
    ATTENDANT_ASSIGN_OR_RETURN(TraceEntry entry, ReadTimestamped(object, line));
    entries.push_back(std::move(entry));
    return absl::OkStatus();
  }
  if (!object.is_object() || !object.contains("time")) {
    return Malformed(line, "is no JSON object with a timestamp or a time");
  }
  ATTENDANT_ASSIGN_OR_RETURN(std::optional<TraceEntry> entry, ReadLogged(object, origin, line));
  if (entry.has_value()) entries.push_back(*std::move(entry));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TraceEntry>> ReadTrace(std::istream& in) {
  std::vector<TraceEntry> entries;
  absl::Time origin = absl::InfinitePast();
  std::string text;
  int64_t tokens = 0;
  for (int64_t line = 1;; ++line) {
    const absl::StatusOr<bool> found = NextLine(in, text);
    if (!found.ok()) return Malformed(line, found.status().message());
    if (!*found) break;
    if (text.empty() || text == "\r") continue;
    const size_t before = entries.size();
    ATTENDANT_RETURN_IF_ERROR(ReadLine(text, line, origin, entries));
    if (entries.size() > before) tokens += entries.back().tokens;
    if (entries.size() > kMaxEntries || tokens > kMaxTraceTokens) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the trace has more than ", kMaxEntries, " requests or ", kMaxTraceTokens, " tokens"));
    }
  }
  if (entries.empty()) return absl::FailedPreconditionError("the trace has no requests");
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TraceEntry& a, const TraceEntry& b) { return a.time < b.time; });
  const absl::Duration first = entries.front().time;
  for (TraceEntry& entry : entries) entry.time -= first;
  return entries;
}

}  // namespace attendant::client
