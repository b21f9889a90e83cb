// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_routes.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace attendant {
namespace {

// Whether `path` has the words of a pattern; the others go to `parameters`.
bool Fits(const std::vector<std::string>& pattern, const std::vector<absl::string_view>& path,
          std::vector<std::string>& parameters) {
  parameters.clear();
  if (pattern.size() != path.size()) return false;
  for (size_t i = 0; i < path.size(); ++i) {
    if (!absl::StartsWith(pattern[i], "{")) {
      if (pattern[i] != path[i]) return false;
    } else if (path[i].empty()) {
      return false;
    } else {
      parameters.emplace_back(path[i]);
    }
  }
  return true;
}

// How many words at their fronts fit.
size_t SharedWords(const std::vector<absl::string_view>& pattern,
                   const std::vector<absl::string_view>& path) {
  size_t shared = 0;
  while (shared < std::min(pattern.size(), path.size()) &&
         (absl::StartsWith(pattern[shared], "{") || pattern[shared] == path[shared])) {
    ++shared;
  }
  return shared;
}

void Consider(const HttpRoute& route, absl::string_view method, HttpRoutes::Match& match) {
  const bool gets = route.method == "GET";
  if (route.method == method || (gets && method == "HEAD")) match.route = &route;
  absl::StrAppend(&match.allow, match.allow.empty() ? "" : ", ", gets ? "GET, HEAD" : route.method);
}

}  // namespace

HttpRoutes::HttpRoutes(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {
  std::set<absl::string_view> single;
  for (const HttpRoute& route : routes_) {
    single.insert(route.single_headers.begin(), route.single_headers.end());
    if (absl::StrContains(route.path, "{")) {
      patterns_.push_back({&route, absl::StrSplit(route.path, '/')});
    } else {
      fixed_.emplace(route.path, &route);
    }
  }
  single_headers_.assign(single.begin(), single.end());
}

HttpRoutes::Match HttpRoutes::Find(absl::string_view method, absl::string_view path) const {
  Match match;
  match.single_headers = single_headers_;
  const auto [first, last] = fixed_.equal_range(path);
  for (auto entry = first; entry != last; ++entry) Consider(*entry->second, method, match);
  if (match.route != nullptr) return match;
  const std::vector<absl::string_view> segments = absl::StrSplit(path, '/');
  for (const Entry& entry : patterns_) {
    if (first != last) break;  // a fixed path is of no pattern
    std::vector<std::string> parameters;
    if (!Fits(entry.segments, segments, parameters)) continue;
    Consider(*entry.route, method, match);
    if (match.route != entry.route) continue;
    match.parameters = std::move(parameters);
    return match;
  }
  match.error = ErrorNear(segments);
  return match;
}

HttpErrorShape HttpRoutes::ErrorNear(const std::vector<absl::string_view>& path) const {
  size_t most = 1;  // the empty word before the first slash
  HttpErrorShape error = nullptr;
  for (const HttpRoute& route : routes_) {
    const std::vector<absl::string_view> words = absl::StrSplit(route.path, '/');
    const size_t shared = SharedWords(words, path);
    if (shared <= most || words[1].empty()) continue;
    most = shared;
    error = route.error;
  }
  return error;
}

}  // namespace attendant
