// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/dispatch.h"

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/http/connection/foreign_page.h"
#include "server/http/connection/http_message.h"
#include "server/http/connection/request_target.h"

namespace attendant {
namespace {

// The answer to OPTIONS of the server itself.
HttpResponse ServerOptions() { return {.headers = {{"Allow", "GET, HEAD, POST, OPTIONS"}}}; }

HttpResponse PageAnswer(HttpConnection::Host& host, const HttpRoutes::Match& match,
                        const RequestHead& head, const std::string& path) {
  if (!match.allow.empty()) return MethodNotAllowed(match.allow, match.error);
  if (!host.HasPage(path)) return NoSuchPath(match.error);
  if (head.method() != "GET" && head.method() != "HEAD") {
    return MethodNotAllowed("GET, HEAD", nullptr);
  }
  const auto header = [&head](absl::string_view name) { return head.Find(name); };
  return host.Page(path, TakesGzip(header));
}

Dispatched Malformed(HttpResponse answer) {
  return {.answer = std::move(answer), .end = HttpEnd::kMalformed};
}

}  // namespace

Dispatched DispatchHead(HttpConnection::Host& host, const RequestHead& head) {
  if (!IsMethod(head.method())) return Malformed(NotHttp());
  if (head.size() > HttpConnection::kMaxHeaders) return Malformed(HeadTooLong());
  const std::optional<RequestTarget> target = ReadRequestTarget(head.method(), head.target());
  if (!target) return Malformed(UnfitTarget());
  if (!head.HasFitHost()) return Malformed(UnfitHost());
  if (host.loopback()) {
    const std::optional<absl::string_view> name =
        target->authority ? *target->authority : head.Find("host");
    if (head.Repeats("origin") || IsFromForeignPage(name, head.Find("origin"))) {
      return {.answer = ForeignPage(), .end = HttpEnd::kForeignPage};
    }
  }
  if (target->path == "*") return {.answer = ServerOptions()};
  HttpRoutes::Match match = host.routes().Find(head.method(), target->path);
  if (match.route != nullptr) return {.match = std::move(match)};
  return {.answer = PageAnswer(host, match, head, target->path)};
}

}  // namespace attendant
