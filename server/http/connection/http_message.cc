// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/http_message.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"

namespace attendant {
namespace {

absl::string_view ReasonPhrase(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 424:
      return "Failed Dependency";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Internal Server Error";
  }
}

HttpResponse Shaped(int code, HttpErrorShape shape, const absl::Status& status) {
  if (shape != nullptr) return shape({code, status});
  return {.code = code, .body = absl::StrCat(status.message(), "\n")};
}

}  // namespace

size_t EmptyLineBytes(absl::string_view bytes) {
  size_t count = 0;
  while (absl::StartsWith(bytes.substr(count), "\r\n")) count += 2;
  return count;
}

bool IsMethod(absl::string_view word) {
  return std::all_of(word.begin(), word.end(),
                     [](unsigned char c) { return absl::ascii_isupper(c) || c == '-'; });
}

std::string HttpHeadOf(const HttpResponse& response, bool keep_alive, absl::Time now) {
  std::string head = absl::StrCat(
      "HTTP/1.1 ", response.code, " ", ReasonPhrase(response.code),
      "\r\nContent-Type: ", response.content_type, "\r\nContent-Length: ", response.body.size(),
      "\r\nDate: ", absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone()),
      "\r\nCache-Control: no-store\r\nConnection: ", keep_alive ? "keep-alive" : "close", "\r\n");
  for (const auto& [name, value] : response.headers)
    absl::StrAppend(&head, name, ": ", value, "\r\n");
  head += "\r\n";
  return head;
}

void AddCallHeaders(const CallInfo& call, HttpResponse& response) {
  if (!call.request_id.empty()) response.headers.emplace_back("X-Request-Id", call.request_id);
  if (!call.trace.has_value()) return;
  response.headers.emplace_back("Traceparent", call.trace->traceparent());
  if (!call.trace->state.empty()) response.headers.emplace_back("Tracestate", call.trace->state);
}

std::optional<HttpFailure> UnfitBody(absl::string_view coding, std::optional<uint64_t> length,
                                     int64_t max_bytes) {
  constexpr size_t kShown = 32;
  if (length.value_or(0) > static_cast<uint64_t>(max_bytes)) return BodyTooLong(max_bytes);
  if (coding.empty() || absl::EqualsIgnoreCase(coding, "identity") || IsGzip(coding)) {
    return std::nullopt;
  }
  return HttpFailure{415, absl::InvalidArgumentError(
                              absl::StrCat("content-encoding must be gzip or identity, not ",
                                           Quote(coding.substr(0, kShown))))};
}

bool IsGzip(absl::string_view coding) {
  return absl::EqualsIgnoreCase(coding, "gzip") || absl::EqualsIgnoreCase(coding, "x-gzip");
}

std::optional<HttpFailure> UnfitTransfer(absl::string_view codings, bool http_1_0) {
  constexpr size_t kShown = 32;
  if (!http_1_0 && absl::EqualsIgnoreCase(codings, "chunked")) return std::nullopt;
  const absl::string_view last =
      absl::StripAsciiWhitespace(codings.substr(codings.find_last_of(',') + 1));
  const bool ends = !http_1_0 && absl::EqualsIgnoreCase(last, "chunked");
  return HttpFailure{ends ? 501 : 400, absl::InvalidArgumentError(absl::StrCat(
                                           "transfer-encoding must be chunked, of HTTP/1.1, not ",
                                           Quote(codings.substr(0, kShown))))};
}

HttpFailure BodyTooLong(int64_t max_bytes) {
  return {413,
          absl::InvalidArgumentError(absl::StrCat("the body has more than ", max_bytes, " bytes"))};
}

HttpResponse NotHttp() { return {.code = 400, .body = "not an HTTP/1 request\n"}; }

HttpResponse UnfitTarget() {
  return {.code = 400, .body = "the target must be a path or an http URI\n"};
}

HttpResponse UnfitHost() {
  return {.code = 400, .body = "the request must have one valid header Host\n"};
}

HttpResponse HeadTooLong() { return {.code = 431, .body = "the request is too long\n"}; }

HttpResponse NoSuchPath(HttpErrorShape shape) {
  return Shaped(404, shape,
                absl::UnimplementedError("there is no such path; there are /metrics, /healthz and "
                                         "/readyz, and what /openapi.json lists"));
}

HttpResponse MethodNotAllowed(const std::string& allow, HttpErrorShape shape) {
  HttpResponse response =
      Shaped(405, shape, absl::UnimplementedError(absl::StrCat("only ", allow, " is served here")));
  response.headers.emplace_back("Allow", allow);
  return response;
}

}  // namespace attendant
