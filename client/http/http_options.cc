// SPDX-License-Identifier: Apache-2.0
#include "client/http/http_options.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

bool IsSetByClient(absl::string_view name) {
  constexpr std::array<absl::string_view, 4> kNames = {"host", "connection", "content-length",
                                                       "transfer-encoding"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [name](absl::string_view own) { return absl::EqualsIgnoreCase(name, own); });
}

}  // namespace

std::string HttpHead(const HttpClientOptions& options) {
  std::string head = absl::StrCat(options.method, " ", options.path,
                                  " HTTP/1.1\r\nHost: ", options.address, "\r\n");
  if (!options.keep_alive) head += "Connection: close\r\n";
  for (auto header = options.headers.begin(); header != options.headers.end(); ++header) {
    const auto same_name = [header](const auto& later) {
      return absl::EqualsIgnoreCase(later.first, header->first);
    };
    if (IsSetByClient(header->first)) continue;
    if (std::any_of(header + 1, options.headers.end(), same_name)) continue;
    absl::StrAppend(&head, header->first, ": ", header->second, "\r\n");
  }
  return head;
}

}  // namespace attendant::client
