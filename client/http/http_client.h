// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/http/http_options.h"

namespace attendant::client {

struct HttpAnswer {
  int code = 0;
  std::string body = {};
  std::string retry_after = {};  // the header
  int resent = 0;                // how often the request was sent again
  // Why the body is cut: it is longer than max_answer_bytes, or the connection or the time ended.
  absl::Status body_status = absl::OkStatus();
};

// The parts of a request that differ from one to the next.
struct HttpContent {
  absl::string_view body;
  absl::string_view headers = {};  // lines, each with its "\r\n", beside those of the options
};

// Sends requests over HTTP/1.1 to one path of one server, from one thread of its own, called
// "http-client". A connection carries one request at a time, and with keep_alive the next one
// after it. There are as many connections as requests are outstanding. With TLS the server must
// show a certificate of its host that one of the authorities has signed. Thread-safe.
//
// Only the source of this class includes Boost.Beast, which takes half a minute to compile.
class HttpClient {
 public:
  // An answer whose head has come. DEADLINE_EXCEEDED, CANCELLED or UNAVAILABLE: none came.
  using Done = absl::AnyInvocable<void(absl::StatusOr<HttpAnswer>)>;

  // INVALID_ARGUMENT: the address has another form, or the authorities are no PEM certificates.
  // REQUIRES: path and headers are valid in HTTP.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Make(HttpClientOptions options);

  // Cancels the requests that run, and returns after their `done` has returned. It may wait for the
  // system to look up the host: that cannot be stopped.
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends one request; the whole exchange takes at most `timeout`. `done` runs exactly once, on the
  // client's thread; what `content` points to must stay until then. A request whose old
  // connection breaks before a byte of the answer is sent again on a new one: the server may have
  // closed it meanwhile. It may also have read the request; nothing tells these apart.
  void Send(const HttpContent& content, absl::Duration timeout, Done done);

  // Cancels the requests that run.
  void CancelAll();

 private:
  class Loop;
  explicit HttpClient(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

}  // namespace attendant::client
