// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/http/http_types.h"

namespace attendant {

// A page for scrapers, probes and browsers: open to anybody, and made at once.
struct HttpPage {
  std::string path;  // "/connections"
  std::string content_type;
  std::function<std::string()> body;  // called from the HTTP thread
  bool only_on_loopback = false;      // 404 where other machines can connect
};

// Finds the route of a request. A path without {words} goes before one that has them. Immutable.
class HttpRoutes {
 public:
  // REQUIRES: no two routes have the same method and path; none has HEAD, which routes of GET
  // answer.
  explicit HttpRoutes(std::vector<HttpRoute> routes);
  HttpRoutes(const HttpRoutes&) = delete;
  HttpRoutes& operator=(const HttpRoutes&) = delete;

  struct Match {
    const HttpRoute* route = nullptr;
    std::vector<std::string> parameters = {};
    std::string allow = {};  // without a route: the methods that the path has, "GET, HEAD, POST"
    // Without a route: that of the path's routes, or else of the route that shares most words at
    // the front of its path, the first of several. Null: none shares one.
    HttpErrorShape error = nullptr;
    // Of all routes: a client may send all of its headers to every path.
    std::span<const absl::string_view> single_headers = {};
  };
  Match Find(absl::string_view method, absl::string_view path) const;

 private:
  HttpErrorShape ErrorNear(const std::vector<absl::string_view>& path) const;

  struct Entry {
    const HttpRoute* route;
    std::vector<std::string> segments;  // "{" starts one that takes any word
  };

  const std::vector<HttpRoute> routes_;
  std::multimap<std::string, const HttpRoute*, std::less<>> fixed_;
  std::vector<Entry> patterns_;
  std::vector<absl::string_view> single_headers_;
};

}  // namespace attendant
