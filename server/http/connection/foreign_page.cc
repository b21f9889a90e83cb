// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/foreign_page.h"

#include <arpa/inet.h>

#include <cstddef>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

// Of "host:port" or "[v6]:port", without the port and the brackets.
absl::string_view HostOf(absl::string_view authority) {
  if (absl::ConsumePrefix(&authority, "[")) return authority.substr(0, authority.find(']'));
  return authority.substr(0, authority.find(':'));
}

bool IsAddress(absl::string_view host) {
  in6_addr address;
  const std::string text(host);
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

}  // namespace

bool IsFromForeignPage(std::optional<absl::string_view> host,
                       std::optional<absl::string_view> origin) {
  const absl::string_view name = HostOf(host.value_or(""));
  if (host && !IsAddress(name) && !absl::EqualsIgnoreCase(name, "localhost")) return true;
  if (!origin) return false;
  const size_t scheme_end = origin->find("://");  // "null" has none
  if (!host || scheme_end == absl::string_view::npos) return true;
  return !absl::EqualsIgnoreCase(HostOf(origin->substr(scheme_end + 3)), name);
}

HttpResponse ForeignPage() {
  return {.code = 403,
          .body =
              "this port is for this machine: Host must be an IP address or localhost, and "
              "Origin, if there is one, the same host (docs/http.md)\n"};
}

}  // namespace attendant
