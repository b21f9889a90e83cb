// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/otlp_json.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace attendant {
namespace {

using TraceJson = nlohmann::json;

constexpr int kStatusError = 2;

// In quotes. Most texts are plain: only others need the library.
void AppendText(absl::string_view text, std::string& json) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isprint(c) && c != '"' && c != '\\';
  });
  if (plain) {
    absl::StrAppend(&json, "\"", text, "\"");
  } else {
    json += TraceJson(std::string(text)).dump(-1, ' ', true, TraceJson::error_handler_t::replace);
  }
}

// "[a,b]"
template <typename Values, typename Append>
void AppendList(const Values& values, std::string& json, Append append) {
  json += '[';
  for (const auto& value : values) {
    if (json.back() != '[') json += ',';
    append(value);
  }
  json += ']';
}

std::string HexDigits(uint64_t id) { return absl::StrCat(absl::Hex(id, absl::kZeroPad16)); }

// The ids' fields, without braces.
void AppendIds(const SpanIds& ids, std::string& json) {
  absl::StrAppend(&json, R"("traceId":")", HexDigits(ids.trace_high), HexDigits(ids.trace_low),
                  R"(","spanId":")", HexDigits(ids.span), "\"");
}

void AppendAttributes(const std::vector<SpanAttribute>& attributes, std::string& json) {
  json += R"("attributes":)";
  AppendList(attributes, json, [&json](const SpanAttribute& attribute) {
    json += R"({"key":)";
    AppendText(attribute.name, json);
    if (const int64_t* number = std::get_if<int64_t>(&attribute.value)) {
      absl::StrAppend(&json, R"(,"value":{"intValue":")", *number, "\"}}");
    } else {
      json += R"(,"value":{"stringValue":)";
      AppendText(std::get<std::string>(attribute.value), json);
      json += "}}";
    }
  });
}

void AppendLinks(const std::vector<SpanIds>& links, std::string& json) {
  json += R"(,"links":)";
  AppendList(links, json, [&json](const SpanIds& link) {
    json += '{';
    AppendIds(link, json);
    json += '}';
  });
}

void AppendSpan(const OtlpSpan& span, std::string& json) {
  json += '{';
  AppendIds(span.ids, json);
  if (span.parent != 0) {
    absl::StrAppend(&json, R"(,"parentSpanId":")", HexDigits(span.parent), "\"");
  }
  if (!span.state.empty()) {
    json += R"(,"traceState":)";
    AppendText(span.state, json);
  }
  json += R"(,"name":)";
  AppendText(span.name, json);
  absl::StrAppend(&json, R"(,"kind":)", static_cast<int>(span.kind), R"(,"startTimeUnixNano":")",
                  absl::ToUnixNanos(span.start), R"(","endTimeUnixNano":")",
                  absl::ToUnixNanos(span.end), R"(",)");
  AppendAttributes(span.attributes, json);
  if (!span.links.empty()) AppendLinks(span.links, json);
  if (!span.error.empty()) {
    absl::StrAppend(&json, R"(,"status":{"code":)", kStatusError, R"(,"message":)");
    AppendText(span.error, json);
    json += '}';
  }
  json += '}';
}

}  // namespace

std::string ToOtlpJson(const std::vector<SpanAttribute>& resource, absl::string_view version,
                       std::span<const OtlpSpan> spans) {
  std::string json = R"({"resourceSpans":[{"resource":{)";
  AppendAttributes(resource, json);
  json += R"(},"scopeSpans":[{"scope":{"name":"attendant","version":)";
  AppendText(version, json);
  json += R"(},"spans":)";
  AppendList(spans, json, [&json](const OtlpSpan& span) { AppendSpan(span, json); });
  json += "}]}]}";
  return json;
}

OtlpAnswer ReadOtlpAnswer(absl::string_view json) {
  constexpr size_t kMaxMessage = 200;
  const TraceJson answer = TraceJson::parse(json.begin(), json.end(), nullptr, false);
  if (!answer.is_object()) return {};
  const TraceJson partial = answer.value("partialSuccess", TraceJson());
  if (!partial.is_object()) return {};
  OtlpAnswer read;
  const TraceJson rejected = partial.value("rejectedSpans", TraceJson());
  if (rejected.is_number_integer()) {
    read.rejected_spans = rejected.get<int64_t>();
  } else if (rejected.is_string() &&
             !absl::SimpleAtoi(rejected.get<std::string>(), &read.rejected_spans)) {
    read.rejected_spans = 0;
  }
  const TraceJson message = partial.value("errorMessage", TraceJson());
  if (message.is_string()) read.message = message.get<std::string>().substr(0, kMaxMessage);
  read.rejected_spans = std::max<int64_t>(read.rejected_spans, 0);
  return read;
}

}  // namespace attendant
