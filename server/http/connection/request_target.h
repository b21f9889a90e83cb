// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// The target of a request (RFC 9112, 3.2): "/path?query", "http://authority/path?query", or "*" for
// the server itself, which OPTIONS alone may ask for.
struct RequestTarget {
  // The path, without the query. Escapes of letters, digits and "-._~" are undone, since they mean
  // the same character (RFC 3986, 6.2.2.2). All other escapes stay: "%2F" divides no words.
  std::string path;
  // The server's name and port. It counts instead of the header Host.
  std::optional<std::string> authority = {};
};

// Nothing for a target of another form, as CONNECT has it.
std::optional<RequestTarget> ReadRequestTarget(absl::string_view method, absl::string_view target);

// True if `value` may stand in the header Host: a name or address, and maybe a port; or nothing.
bool IsHostValue(absl::string_view value);

}  // namespace attendant
