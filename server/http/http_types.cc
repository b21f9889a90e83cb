// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_types.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/http/gzip.h"
#include "server/retry/retry_hint.h"

namespace attendant {
namespace {

constexpr size_t kLeastGzipBytes = 1024;  // below, one packet takes the answer either way

int CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kFailedPrecondition:
      return 424;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

// retry-after counts whole seconds; OpenAI's clients read the other one first.
void AddRetryAfter(const absl::Status& status, HttpResponse& response) {
  const std::optional<absl::Duration> delay = RetryAfter(status);
  if (!delay.has_value()) return;
  const absl::Duration seconds = absl::Ceil(*delay, absl::Seconds(1));
  response.headers.emplace_back("Retry-After", absl::StrCat(absl::ToInt64Seconds(seconds)));
  response.headers.emplace_back("Retry-After-Ms", absl::StrCat(absl::ToInt64Milliseconds(*delay)));
}

// Each 401 names a way to send the key (RFC 9110, 11.6.1).
void AddChallenge(const absl::Status& status, HttpResponse& response) {
  if (absl::IsUnauthenticated(status)) response.headers.emplace_back("WWW-Authenticate", "Bearer");
}

}  // namespace

HttpFailure FailureOf(const absl::Status& status) { return {CodeOf(status.code()), status}; }

HttpResponse ErrorResponse(const HttpRoute& route, const HttpFailure& failure) {
  HttpResponse response = route.error(failure);
  AddRetryAfter(failure.status, response);
  AddChallenge(failure.status, response);
  return response;
}

bool TakesGzip(const HttpHeaders& header) {
  for (absl::string_view coding : absl::StrSplit(header("accept-encoding").value_or(""), ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(coding, absl::MaxSplits(';', 1));
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts.first), "gzip")) continue;
    const std::string weight = absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts.second));
    double q = 1;
    return !absl::SimpleAtod(absl::StripPrefix(weight, "q="), &q) || q > 0;
  }
  return false;
}

void Compress(bool takes_gzip, HttpResponse& response) {
  if (!response.compressible || response.body.size() < kLeastGzipBytes) return;
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (!takes_gzip) return;
  response.body = Gzip(response.body);
  response.headers.emplace_back("Content-Encoding", "gzip");
}

int64_t CompressAnswer(HttpExchange& exchange) {
  Compress(TakesGzip(exchange.header), exchange.response);
  return exchange.head_only ? 0 : static_cast<int64_t>(exchange.response.body.size());
}

void EndExchange(std::unique_ptr<HttpExchange> exchange, const absl::Status& status) {
  exchange->send(status.ok() ? std::move(exchange->response)
                             : ErrorResponse(exchange->route, FailureOf(status)));
}

HttpRoute MakeHttpRoute(std::string method, std::string path, MethodGroup group,
                        HttpErrorShape error,
                        std::function<void(std::unique_ptr<HttpExchange>)> handler,
                        HttpRouteDoc doc) {
  CallMethod call{absl::StrCat(method, " ", path), group};
  return {.method = std::move(method),
          .path = std::move(path),
          .call = std::move(call),
          .error = error,
          .handler = std::move(handler),
          .doc = std::move(doc)};
}

}  // namespace attendant
