// SPDX-License-Identifier: Apache-2.0
#include "server/http/client/otlp_poster.h"

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client/http/http_client.h"
#include "client/http/http_options.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "server/http/gzip.h"

namespace attendant {
namespace {

using client::HttpAnswer;
using client::HttpClient;

constexpr uint64_t kMaxAnswerBytes = uint64_t{64} << 10;
constexpr int64_t kMaxCaBytes = int64_t{4} << 20;

class OtlpPoster final : public SpanTransport {
 public:
  OtlpPoster(std::unique_ptr<HttpClient> http, bool gzip) : gzip_(gzip), http_(std::move(http)) {}

  absl::StatusOr<Answer> Post(absl::string_view json, absl::Duration timeout) override {
    const std::string body = gzip_ ? Gzip(json) : std::string(json);
    absl::Notification ended;
    absl::StatusOr<HttpAnswer> answer;
    {
      absl::MutexLock lock(&mutex_);
      if (cancelled_) return absl::CancelledError("the server stops");
      http_->Send({.body = body}, timeout, [&](absl::StatusOr<HttpAnswer> result) {
        answer = std::move(result);
        ended.Notify();
      });
    }
    ended.WaitForNotification();
    if (!answer.ok()) return answer.status();
    // The head says what became of the request, also where the body is cut.
    return Answer{.code = answer->code,
                  .retry_after = std::move(answer->retry_after),
                  .body = std::move(answer->body)};
  }

  void Cancel() override {
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
    }
    http_->CancelAll();
  }

 private:
  const bool gzip_;
  absl::Mutex mutex_;  // a request is sent before the end, or sees it
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<HttpClient> http_;
};

// The headers that are not the user's stand last: they count.
client::HttpClientOptions ClientOptions(OtlpPosterOptions options,
                                        std::optional<std::string> authorities) {
  client::HttpClientOptions http{.address = options.endpoint.authority(),
                                 .path = std::move(options.endpoint.path),
                                 .headers = std::move(options.headers),
                                 .keep_alive = false,
                                 .max_answer_bytes = kMaxAnswerBytes,
                                 .tls = options.endpoint.tls,
                                 .authorities = std::move(authorities)};
  http.headers.emplace_back("User-Agent", absl::StrCat("attendant-otlp/", options.version));
  http.headers.emplace_back("Content-Type", "application/json");
  if (options.gzip) http.headers.emplace_back("Content-Encoding", "gzip");
  return http;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SpanTransport>> MakeOtlpPoster(OtlpPosterOptions options) {
  const std::string ca_file = options.endpoint.tls ? options.ca_file : "";
  const bool gzip = options.gzip;
  std::optional<std::string> authorities;
  if (!ca_file.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(authorities, ReadTextFile(ca_file, kMaxCaBytes));
  }
  absl::StatusOr<std::unique_ptr<HttpClient>> http =
      HttpClient::Make(ClientOptions(std::move(options), std::move(authorities)));
  if (!http.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(ca_file, ": ", http.status().message()));
  }
  return std::make_unique<OtlpPoster>(*std::move(http), gzip);
}

}  // namespace attendant
