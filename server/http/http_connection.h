// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/net/listening_socket.h"

namespace attendant {

struct HttpRequest {
  absl::string_view method;
  absl::string_view path;  // as sent, without query
};

struct HttpResponse {
  int code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// One HTTP/1.x connection of a poll loop: reads one request, writes one response, closes. The body
// of a request is never read. Each step has a time limit, and a request has at most
// kMaxRequestBytes.
//
//   reading --request complete, or too long--> writing --all sent--> closing --peer closed--> gone
class HttpConnection {
 public:
  static constexpr size_t kMaxRequestBytes = 16384;
  static constexpr absl::Duration kReadTime = absl::Seconds(3);
  static constexpr absl::Duration kWriteTime = absl::Seconds(10);
  static constexpr absl::Duration kCloseTime = absl::Seconds(1);

  // `fd` is a connected, non-blocking socket.
  HttpConnection(FileDescriptor fd, absl::Time now)
      : fd_(std::move(fd)), deadline_(now + kReadTime) {}

  int fd() const { return fd_.get(); }
  short events() const;  // what to poll for
  absl::Time deadline() const { return deadline_; }
  bool reading() const { return state_ == State::kReading; }  // its request has not come yet

  // Does the next step; the socket must be ready. False: the connection has ended.
  bool Continue(const HttpHandler& handler, absl::Time now);

 private:
  enum class State { kReading, kWriting, kClosing };

  bool Read(const HttpHandler& handler, absl::Time now);
  bool Write(absl::Time now);
  bool Discard();

  FileDescriptor fd_;
  State state_ = State::kReading;
  absl::Time deadline_;
  std::string input_;
  std::string output_;
  size_t written_ = 0;  // of output_
};

// The whole response to any request head. A `head` that does not end in an empty line is too long.
std::string AnswerHttp(absl::string_view head, const HttpHandler& handler);

}  // namespace attendant
