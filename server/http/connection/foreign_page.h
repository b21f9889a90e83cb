// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "server/http/http_types.h"

namespace attendant {

// True if a request to a loopback port may come from a foreign web page in a browser on this
// machine (DNS rebinding, cross-site requests). Such a request names another host: a page whose
// name resolves to this machine sends that name as Host, and a page of another server sends that
// server as Origin. IP addresses and localhost count as this machine. Programs other than browsers
// send no Origin.
bool IsFromForeignPage(std::optional<absl::string_view> host,
                       std::optional<absl::string_view> origin);

// The answer to it: 403.
HttpResponse ForeignPage();

}  // namespace attendant
