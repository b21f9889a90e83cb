// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/http/http_client.h"
#include "client/load/caller.h"

namespace attendant::client {

// A request, written once and sent many times.
struct HttpRequest {
  std::string body = {};
  int64_t sequences = 1;
  int64_t tokens = 0;        // 0: only the answer tells
  std::string headers = {};  // lines of its own, each with its "\r\n"
};

struct HttpTarget {
  std::string address;  // "host:8002", "[::1]:8002"
  std::string path;     // of every request
  absl::Duration timeout = absl::Seconds(30);
  std::vector<std::pair<std::string, std::string>> headers = {};  // of every request
};

// Parses "http://host:8002" or the address alone. FAILED_PRECONDITION for another form, and for
// https.
absl::StatusOr<HttpTarget> ParseHttpTarget(absl::string_view address);

// An answer's code as one of gRPC; the message has the begin of its body. OK below 300.
absl::Status StatusOf(const HttpAnswer& answer);

// Sends ready-made requests over HTTP/1.1 without TLS, from one thread. There are as many
// connections as requests are outstanding, whatever connection Start asks for.
class HttpCaller : public Caller {
 public:
  // Fills in the fields that the body of an answer tells. `sequences` has what the request asks
  // for; an answer about another number is an error, INTERNAL.
  using Measure = std::function<void(absl::string_view body, CallResult&)>;

  // INVALID_ARGUMENT for an address of another form. REQUIRES: `requests` is not empty.
  static absl::StatusOr<std::unique_ptr<HttpCaller>> Make(HttpTarget target,
                                                          std::vector<HttpRequest> requests,
                                                          Measure measure);

  void Start(int64_t index, int64_t connection, Done done) override;
  void CancelAll() override { http_->CancelAll(); }

 private:
  HttpCaller(absl::Duration timeout, std::vector<HttpRequest> requests, Measure measure,
             std::unique_ptr<HttpClient> http);

  const absl::Duration timeout_;
  const std::vector<HttpRequest> requests_;
  const Measure measure_;
  std::unique_ptr<HttpClient> http_;  // last: its thread uses all of the above
};

}  // namespace attendant::client
