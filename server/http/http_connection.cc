// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

constexpr absl::string_view kHeadEnd = "\r\n\r\n";

absl::string_view ReasonPhrase(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

// The path of a request target: "/path?query", or the same behind "http://host".
absl::string_view PathOf(absl::string_view target) {
  if (absl::ConsumePrefix(&target, "http://")) {
    target.remove_prefix(std::min(target.find('/'), target.size()));
  }
  return target.substr(0, target.find('?'));
}

// Of the head only the first line matters: METHOD SP TARGET SP HTTP/1.x
std::optional<HttpRequest> ParseHead(absl::string_view head) {
  const absl::string_view line = head.substr(0, head.find("\r\n"));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || words[0].empty() || words[1].empty()) return std::nullopt;
  if (!std::all_of(words[0].begin(), words[0].end(), absl::ascii_isupper)) return std::nullopt;
  if (words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0") return std::nullopt;
  return HttpRequest{.method = words[0], .path = PathOf(words[1])};
}

std::string Format(const HttpResponse& response, bool with_body) {
  return absl::StrCat(
      "HTTP/1.1 ", response.code, " ", ReasonPhrase(response.code),
      "\r\nContent-Type: ", response.content_type, "\r\nContent-Length: ", response.body.size(),
      "\r\nCache-Control: no-store\r\nConnection: close\r\n",
      response.code == 405 ? "Allow: GET, HEAD\r\n" : "", "\r\n", with_body ? response.body : "");
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

std::string AnswerHttp(absl::string_view head, const HttpHandler& handler) {
  if (!absl::EndsWith(head, kHeadEnd)) {
    return Format({.code = 431, .body = "the request is too long\n"}, true);
  }
  const std::optional<HttpRequest> request = ParseHead(head);
  if (!request.has_value()) return Format({.code = 400, .body = "not an HTTP/1 request\n"}, true);
  if (request->method != "GET" && request->method != "HEAD") {
    return Format({.code = 405, .body = "only GET and HEAD are served\n"}, true);
  }
  return Format(handler(*request), request->method == "GET");
}

short HttpConnection::events() const { return state_ == State::kWriting ? POLLOUT : POLLIN; }

bool HttpConnection::Continue(const HttpHandler& handler, absl::Time now) {
  switch (state_) {
    case State::kReading:
      return Read(handler, now);
    case State::kWriting:
      return Write(now);
    case State::kClosing:
      return Discard();
  }
  return false;
}

bool HttpConnection::Read(const HttpHandler& handler, absl::Time now) {
  char buffer[4096];
  const ssize_t count = recv(fd(), buffer, sizeof(buffer), 0);
  if (count < 0) return WouldBlock();
  if (count == 0) return false;
  // The end of the head may lie across the old and the new bytes.
  const size_t search_from = input_.size() < 3 ? 0 : input_.size() - 3;
  input_.append(buffer, static_cast<size_t>(count));
  const size_t end = input_.find(std::string(kHeadEnd), search_from);
  if (end != std::string::npos) {
    input_.resize(end + kHeadEnd.size());
  } else if (input_.size() < kMaxRequestBytes) {
    return true;
  }
  output_ = AnswerHttp(input_, handler);
  state_ = State::kWriting;
  deadline_ = now + kWriteTime;
  return Write(now);
}

bool HttpConnection::Write(absl::Time now) {
  const ssize_t count =
      send(fd(), output_.data() + written_, output_.size() - written_, MSG_NOSIGNAL);
  if (count < 0) return WouldBlock();
  written_ += static_cast<size_t>(count);
  if (written_ < output_.size()) return true;
  // Closing with unread input would reset the connection, and the peer could lose the answer.
  state_ = State::kClosing;
  deadline_ = now + kCloseTime;
  return shutdown(fd(), SHUT_WR) == 0;
}

bool HttpConnection::Discard() {
  char buffer[4096];
  const ssize_t count = recv(fd(), buffer, sizeof(buffer), 0);
  return count > 0 || (count < 0 && WouldBlock());
}

}  // namespace attendant
