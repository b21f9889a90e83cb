// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/otlp_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <variant>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

using Variables = std::map<std::string, std::string>;

constexpr char kVariable[] = "OTEL_EXPORTER_OTLP_ENDPOINT";
constexpr char kTracesVariable[] = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

OtlpSettings Read(const std::string& flag, const Variables& variables) {
  const auto get = [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  return ReadOtlpSettings(flag, "1.2.3", get);
}

// With an endpoint.
OtlpSettings ReadWith(Variables variables) {
  variables.emplace(kVariable, "http://collector:4318");
  return Read("", variables);
}

// "http://host:port/path", or "off".
std::string Url(const OtlpSettings& settings) {
  if (!settings.endpoint.has_value()) return "off";
  const OtlpEndpoint& endpoint = *settings.endpoint;
  return (endpoint.tls ? "https://" : "http://") + endpoint.authority() + endpoint.path;
}

Variables Resource(const OtlpSettings& settings) {
  Variables resource;
  for (const SpanAttribute& attribute : settings.resource) {
    EXPECT_TRUE(resource.emplace(attribute.name, std::get<std::string>(attribute.value)).second);
  }
  return resource;
}

TEST(OtlpEndpointTest, ReadsUrls) {
  const std::map<std::string, std::string> urls = {
      {"http://collector:4318", "http://collector:4318/v1/traces"},
      {"https://collector", "https://collector:443/v1/traces"},
      {"HTTP://127.0.0.1", "http://127.0.0.1:80/v1/traces"},
      {"http://c:4318/", "http://c:4318/v1/traces"},
      {"http://c:4318/otlp/", "http://c:4318/otlp/v1/traces"},
      {"http://[::1]:4318/otlp", "http://[::1]:4318/otlp/v1/traces"},
      {"https://[::1]", "https://[::1]:443/v1/traces"}};
  for (const auto& [url, expected] : urls) EXPECT_EQ(Url(Read(url, {})), expected) << url;
}

TEST(OtlpEndpointTest, RefusesWhatIsNone) {
  for (const char* url :
       {"", "collector:4318", "grpc://c:4317", "http://", "http://:4318", "http://c:0",
        "http://c:65536", "http://c:port", "http://c:", "http://user@c:1", "http://c c:1",
        "http://::1:4318", "http://[c]:1", "http://[::1", "http://c/a b", "http://c/\r\nX: y",
        "http://c/#a", "http://c:1\n"}) {
    const absl::Status status = ParseOtlpCollector(url).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not http://HOST:PORT")) << url;
  }
}

TEST(OtlpEndpointTest, ALongUrlIsRefused) {
  const std::string host = "http://c/";
  EXPECT_TRUE(ParseOtlpEndpoint(host + std::string(kMaxOtlpUrlBytes - host.size(), 'a')).ok());
  const std::string longer = host + std::string(kMaxOtlpUrlBytes - host.size() + 1, 'a');
  EXPECT_EQ(std::string(ParseOtlpEndpoint(longer).status().message()),
            "the URL has 4097 bytes, the limit is 4096");
}

TEST(OtlpEndpointTest, AUsersNameAndPasswordAreNotShown) {
  for (const char* url : {"http://user:secret@c:1", "user:secret@c:1"}) {
    const std::string message(ParseOtlpEndpoint(url).status().message());
    EXPECT_THAT(message, Not(HasSubstr("secret")));
    EXPECT_THAT(message, HasSubstr("a URL with an @ is not http://HOST:PORT"));
  }
}

TEST(OtlpSettingsTest, WithoutAnEndpointTracesAreOff) {
  EXPECT_EQ(Url(Read("", {})), "off");
  EXPECT_EQ(Url(Read("", {{kVariable, ""}, {"OTEL_SERVICE_NAME", "x"}})), "off");
}

TEST(OtlpSettingsTest, FlagThenTracesThenAll) {
  Variables variables = {{kVariable, "http://all:1"}};
  EXPECT_EQ(Url(Read("", variables)), "http://all:1/v1/traces");
  variables[kTracesVariable] = "http://traces:2/as/it/is";
  EXPECT_EQ(Url(Read("", variables)), "http://traces:2/as/it/is");
  EXPECT_EQ(Url(Read("http://flag:3", variables)), "http://flag:3/v1/traces");
}

TEST(OtlpSettingsTest, TheEnvironmentCanSwitchItselfOff) {
  EXPECT_EQ(Url(ReadWith({{"OTEL_SDK_DISABLED", "TRUE"}})), "off");
  EXPECT_EQ(Url(ReadWith({{"OTEL_TRACES_EXPORTER", "none"}})), "off");
  EXPECT_EQ(Url(ReadWith({{"OTEL_TRACES_EXPORTER", "otlp"}})), "http://collector:4318/v1/traces");
  EXPECT_EQ(Url(Read("http://flag:3", {{"OTEL_SDK_DISABLED", "true"}})), "http://flag:3/v1/traces");
}

TEST(OtlpSettingsTest, ABrokenEndpointIsOffAndSaysSo) {
  const OtlpSettings settings = Read("", {{kVariable, "collector:4317"}});
  EXPECT_EQ(Url(settings), "off");
  EXPECT_THAT(settings.warnings,
              ElementsAre("OTEL_EXPORTER_OTLP_ENDPOINT is ignored: 'collector:4317' is not "
                          "http://HOST:PORT or https://HOST:PORT"));
}

TEST(OtlpSettingsTest, ReadsHeaders) {
  const OtlpSettings settings = ReadWith(
      {{"OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20a%3D%3d, x-scope =  b=c ,,"}});
  EXPECT_THAT(settings.headers,
              ElementsAre(Pair("authorization", "Bearer a=="), Pair("x-scope", "b=c")));
  EXPECT_THAT(settings.warnings, IsEmpty());
  const OtlpSettings own = ReadWith(
      {{"OTEL_EXPORTER_OTLP_HEADERS", "a=b"}, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "c=d"}});
  EXPECT_THAT(own.headers, ElementsAre(Pair("c", "d")));
}

TEST(OtlpSettingsTest, NoHeaderBreaksTheRequestAndNoneIsShown) {
  for (const std::string text : {"a=secret%0d%0aX: y", "a b=secret", "secret", "=secret", "a=%4",
                                 "a=secret%zz", "a=secret%"}) {
    const OtlpSettings settings = ReadWith({{"OTEL_EXPORTER_OTLP_HEADERS", text}});
    EXPECT_THAT(settings.headers, IsEmpty()) << text;
    ASSERT_EQ(settings.warnings.size(), 1u) << text;
    EXPECT_THAT(settings.warnings[0], HasSubstr("OTEL_EXPORTER_OTLP_HEADERS is ignored"));
    EXPECT_THAT(settings.warnings[0], Not(HasSubstr("secret")));
  }
}

TEST(OtlpSettingsTest, ManyHeadersAreIgnored) {
  const std::string fits = "a=" + std::string(kMaxOtlpHeaderBytes - 2, 'b');
  EXPECT_EQ(ReadWith({{"OTEL_EXPORTER_OTLP_HEADERS", fits}}).headers.size(), 1u);
  const OtlpSettings settings = ReadWith({{"OTEL_EXPORTER_OTLP_HEADERS", fits + "b"}});
  EXPECT_THAT(settings.headers, IsEmpty());
  EXPECT_THAT(settings.warnings, ElementsAre("OTEL_EXPORTER_OTLP_HEADERS is ignored: it has 16385 "
                                             "bytes, the limit is 16384"));
}

TEST(OtlpSettingsTest, NamesTheService) {
  const Variables defaults = Resource(ReadWith({}));
  EXPECT_EQ(defaults.at("service.name"), "attendant");
  EXPECT_EQ(defaults.at("service.version"), "1.2.3");
  EXPECT_EQ(defaults.at("telemetry.sdk.language"), "cpp");
  const Variables given = Resource(
      ReadWith({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=a,deployment.environment=b%2Cc"}}));
  EXPECT_EQ(given.at("service.name"), "a");
  EXPECT_EQ(given.at("deployment.environment"), "b,c");
  const Variables named = Resource(
      ReadWith({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=a"}, {"OTEL_SERVICE_NAME", "b"}}));
  EXPECT_EQ(named.at("service.name"), "b");
}

TEST(OtlpSettingsTest, ReadsNumbersAndWords) {
  const OtlpSettings defaults = ReadWith({});
  EXPECT_TRUE(defaults.gzip);
  EXPECT_EQ(defaults.timeout, absl::Seconds(10));
  EXPECT_EQ(defaults.delay, absl::Seconds(5));
  EXPECT_EQ(defaults.max_queued_spans, 8192u);
  EXPECT_EQ(defaults.max_batch_spans, 512u);
  EXPECT_TRUE(defaults.sampler.Samples(std::nullopt, ~uint64_t{0}));
  const OtlpSettings given = ReadWith({{"OTEL_EXPORTER_OTLP_COMPRESSION", "none"},
                                       {"OTEL_EXPORTER_OTLP_TIMEOUT", "250"},
                                       {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"},
                                       {"OTEL_BSP_SCHEDULE_DELAY", "100"},
                                       {"OTEL_BSP_MAX_QUEUE_SIZE", "64"},
                                       {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "100"},
                                       {"OTEL_TRACES_SAMPLER", "parentbased_always_off"}});
  EXPECT_THAT(given.warnings, IsEmpty());
  EXPECT_FALSE(given.gzip);
  EXPECT_EQ(given.timeout, absl::Milliseconds(250));
  EXPECT_EQ(given.ca_file, "/ca.pem");
  EXPECT_EQ(given.delay, absl::Milliseconds(100));
  EXPECT_EQ(given.max_queued_spans, 64u);
  EXPECT_EQ(given.max_batch_spans, 64u) << "a batch is no larger than the queue";
  EXPECT_FALSE(given.sampler.Samples(std::nullopt, 0));
}

TEST(OtlpSettingsTest, WhatCannotBeUsedIsIgnoredAndNamed) {
  const OtlpSettings settings = ReadWith({{"OTEL_EXPORTER_OTLP_TIMEOUT", "0"},
                                          {"OTEL_BSP_SCHEDULE_DELAY", "soon"},
                                          {"OTEL_TRACES_SAMPLER", "xray"},
                                          {"OTEL_RESOURCE_ATTRIBUTES", "a"},
                                          {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}});
  EXPECT_EQ(settings.timeout, absl::Seconds(10));
  EXPECT_EQ(settings.delay, absl::Seconds(5));
  EXPECT_TRUE(settings.sampler.Samples(std::nullopt, 0));
  EXPECT_EQ(Resource(settings).at("service.name"), "attendant");
  EXPECT_THAT(settings.warnings,
              testing::UnorderedElementsAre(HasSubstr("OTEL_EXPORTER_OTLP_TIMEOUT is ignored"),
                                            HasSubstr("OTEL_BSP_SCHEDULE_DELAY is ignored"),
                                            HasSubstr("OTEL_TRACES_SAMPLER is ignored"),
                                            HasSubstr("OTEL_RESOURCE_ATTRIBUTES is ignored"),
                                            HasSubstr("OTEL_EXPORTER_OTLP_PROTOCOL is ignored")));
}

}  // namespace
}  // namespace attendant
