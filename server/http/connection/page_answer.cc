// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/page_answer.h"

#include "server/http/connection/http_message.h"

namespace attendant {

HttpResponse PageAnswer(HttpConnection::Host& host, const HttpRoutes::Match& match,
                        absl::string_view method, absl::string_view path) {
  HttpResponse page;
  if (!match.allow.empty()) return MethodNotAllowed(match.allow, match.error);
  if (!host.Page(path, page)) return NoSuchPath(match.error);
  if (method != "GET" && method != "HEAD") return MethodNotAllowed("GET, HEAD", nullptr);
  return page;
}

}  // namespace attendant
