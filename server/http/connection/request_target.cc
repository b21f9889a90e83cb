// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/request_target.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"

namespace attendant {
namespace {

bool IsUnreserved(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~", c);
}

std::string WithoutNeedlessEscapes(absl::string_view path) {
  constexpr size_t kEscapeBytes = 3;  // "%41"
  std::string plain;
  while (!path.empty()) {
    const absl::string_view digits = path.substr(1, kEscapeBytes - 1);
    std::string byte;
    const bool escaped = path[0] == '%' && digits.size() == 2 &&
                         std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit);
    if (escaped) byte = absl::HexStringToBytes(digits);
    const bool needless = escaped && IsUnreserved(byte[0]);
    plain.push_back(needless ? byte[0] : path[0]);
    path.remove_prefix(needless ? kEscapeBytes : 1);
  }
  return plain;
}

std::string PathOf(absl::string_view path_and_query) {
  return WithoutNeedlessEscapes(path_and_query.substr(0, path_and_query.find('?')));
}

// The bytes of "http://" or "https://" at the front; 0 without one.
size_t SchemeBytes(absl::string_view target) {
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (absl::StartsWithIgnoreCase(target, scheme)) return scheme.size();
  }
  return 0;
}

}  // namespace

std::optional<RequestTarget> ReadRequestTarget(absl::string_view method, absl::string_view target) {
  if (absl::StartsWith(target, "/")) return RequestTarget{.path = PathOf(target)};
  if (target == "*" && method == "OPTIONS") return RequestTarget{.path = "*"};
  const size_t scheme = SchemeBytes(target);
  if (scheme == 0) return std::nullopt;
  target.remove_prefix(scheme);
  const absl::string_view authority = target.substr(0, target.find_first_of("/?"));
  if (authority.empty() || !IsHostValue(authority)) return std::nullopt;
  std::string path = PathOf(target.substr(authority.size()));
  return RequestTarget{.path = path.empty() ? "/" : std::move(path),
                       .authority = std::string(authority)};
}

bool IsHostValue(absl::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    return IsUnreserved(c) || absl::StrContains("%!$&'()*+,;=:[]", c);
  });
}

}  // namespace attendant
