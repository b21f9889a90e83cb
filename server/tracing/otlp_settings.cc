// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/otlp_settings.h"

#include <algorithm>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

using NamesAndValues = std::vector<std::pair<std::string, std::string>>;

constexpr char kServiceName[] = "service.name";

// "%41" is "A".
absl::StatusOr<std::string> PercentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, 2);
    if (digits.size() != 2 || !std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit)) {
      return absl::InvalidArgumentError("a % is not followed by two hexadecimal digits");
    }
    decoded += absl::HexStringToBytes(digits);
    i += digits.size();
  }
  return decoded;
}

// "name=value,name=value", values percent-encoded. An error does not show the text: it may be a
// secret.
absl::StatusOr<NamesAndValues> ParseList(absl::string_view text) {
  NamesAndValues list;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> words = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(words[0]);
    if (words.size() != 2 || name.empty()) {
      return absl::InvalidArgumentError("it is not a list of NAME=VALUE, separated by commas");
    }
    ATTENDANT_ASSIGN_OR_RETURN(std::string value,
                               PercentDecoded(absl::StripAsciiWhitespace(words[1])));
    list.emplace_back(std::string(name), std::move(value));
  }
  return list;
}

bool IsHeader(absl::string_view name, absl::string_view value) {
  constexpr absl::string_view kNameMarks = "!#$%&'*+-.^_`|~";
  return std::all_of(name.begin(), name.end(),
                     [&](char c) {
                       return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                              absl::StrContains(kNameMarks, c);
                     }) &&
         std::all_of(value.begin(), value.end(), absl::ascii_isprint);
}

absl::StatusOr<NamesAndValues> ParseHeaders(absl::string_view text) {
  if (text.size() > kMaxOtlpHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", text.size(), " bytes, the limit is ", kMaxOtlpHeaderBytes));
  }
  ATTENDANT_ASSIGN_OR_RETURN(NamesAndValues headers, ParseList(text));
  for (const auto& [name, value] : headers) {
    if (IsHeader(name, value)) continue;
    return absl::InvalidArgumentError(absl::StrCat(Quote(name), " cannot be an HTTP header"));
  }
  return headers;
}

absl::StatusOr<int64_t> ParseCount(absl::string_view text) {
  constexpr int64_t kMost = 1'000'000;
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= 1 && number <= kMost) return number;
  return absl::InvalidArgumentError(
      absl::StrCat(Quote(text), " is not a number from 1 to ", kMost));
}

// Reads variables one after the other, and notes what cannot be used.
class Reader {
 public:
  Reader(EnvironmentRef environment, OtlpSettings& settings)
      : environment_(environment), settings_(settings) {}

  void ReadSampler();
  void ReadEndpoint(absl::string_view flag);
  void ReadExport();
  void ReadResource(absl::string_view version);
  bool IsOff();

 private:
  // An empty variable counts as not set.
  std::string Get(const char* name) { return environment_(name).value_or(""); }

  // The first of `names` that is set, read by `parse`.
  template <typename T>
  std::optional<T> Read(std::initializer_list<const char*> names,
                        absl::StatusOr<T> (*parse)(absl::string_view)) {
    for (const char* name : names) {
      const std::string text = Get(name);
      if (text.empty()) continue;
      absl::StatusOr<T> value = parse(text);
      if (value.ok()) return *std::move(value);
      Ignore(name, value.status());
      return std::nullopt;
    }
    return std::nullopt;
  }

  void Ignore(const char* name, const absl::Status& status) {
    settings_.warnings.push_back(absl::StrCat(name, " is ignored: ", status.message()));
  }

  const EnvironmentRef environment_;
  OtlpSettings& settings_;
};

bool Reader::IsOff() {
  return absl::EqualsIgnoreCase(Get("OTEL_SDK_DISABLED"), "true") ||
         Get("OTEL_TRACES_EXPORTER") == "none";
}

void Reader::ReadEndpoint(absl::string_view flag) {
  if (!flag.empty()) {
    if (absl::StatusOr<OtlpEndpoint> endpoint = ParseOtlpCollector(flag); endpoint.ok()) {
      settings_.endpoint = *std::move(endpoint);
    }
    return;
  }
  if (IsOff()) return;
  settings_.endpoint = Get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").empty()
                           ? Read({"OTEL_EXPORTER_OTLP_ENDPOINT"}, &ParseOtlpCollector)
                           : Read({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}, &ParseOtlpEndpoint);
}

void Reader::ReadSampler() {
  const std::string name = Get("OTEL_TRACES_SAMPLER");
  if (name.empty()) return;
  const absl::StatusOr<Sampler> sampler = Sampler::Parse(name, Get("OTEL_TRACES_SAMPLER_ARG"));
  if (sampler.ok()) {
    settings_.sampler = *sampler;
  } else {
    Ignore("OTEL_TRACES_SAMPLER", sampler.status());
  }
}

void Reader::ReadExport() {
  settings_.headers =
      Read({"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"}, &ParseHeaders)
          .value_or(NamesAndValues());
  for (const char* name :
       {"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"}) {
    if (settings_.ca_file.empty()) settings_.ca_file = Get(name);
  }
  std::string compression = Get("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION");
  if (compression.empty()) compression = Get("OTEL_EXPORTER_OTLP_COMPRESSION");
  settings_.gzip = compression != "none";
  for (const char* name : {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"}) {
    const std::string protocol = Get(name);
    if (protocol.empty() || protocol == "http/json") continue;
    Ignore(name, absl::UnimplementedError("spans are sent as http/json"));
  }
  const auto number = [this](std::initializer_list<const char*> names, int64_t otherwise) {
    return Read(names, &ParseCount).value_or(otherwise);
  };
  settings_.timeout = absl::Milliseconds(
      number({"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"}, 10'000));
  settings_.delay = absl::Milliseconds(number({"OTEL_BSP_SCHEDULE_DELAY"}, 5'000));
  settings_.max_queued_spans = static_cast<size_t>(number({"OTEL_BSP_MAX_QUEUE_SIZE"}, 8'192));
  settings_.max_batch_spans =
      std::min(static_cast<size_t>(number({"OTEL_BSP_MAX_EXPORT_BATCH_SIZE"}, 512)),
               settings_.max_queued_spans);
}

void Reader::ReadResource(absl::string_view version) {
  NamesAndValues list = Read({"OTEL_RESOURCE_ATTRIBUTES"}, &ParseList).value_or(NamesAndValues());
  const std::string service = Get("OTEL_SERVICE_NAME");
  if (!service.empty()) {
    std::erase_if(list, [](const auto& entry) { return entry.first == kServiceName; });
    list.emplace_back(kServiceName, service);
  }
  const NamesAndValues defaults = {{kServiceName, "attendant"},
                                   {"service.version", std::string(version)},
                                   {"telemetry.sdk.name", "attendant"},
                                   {"telemetry.sdk.language", "cpp"},
                                   {"telemetry.sdk.version", std::string(version)}};
  for (const auto& entry : defaults) {
    const auto same = [&](const auto& other) { return other.first == entry.first; };
    if (std::none_of(list.begin(), list.end(), same)) list.push_back(entry);
  }
  for (auto& [name, value] : list) settings_.resource.push_back({name, std::move(value)});
}

}  // namespace

OtlpSettings ReadOtlpSettings(absl::string_view flag, absl::string_view version,
                              EnvironmentRef environment) {
  OtlpSettings settings;
  Reader reader(environment, settings);
  reader.ReadEndpoint(flag);
  if (!settings.endpoint.has_value()) return settings;
  reader.ReadSampler();
  reader.ReadExport();
  reader.ReadResource(version);
  return settings;
}

}  // namespace attendant
