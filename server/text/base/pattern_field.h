// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"
#include "server/text/unicode/pattern.h"

namespace attendant {

// Reads the member `pattern`: {"String": "..."} or {"Regex": "..."}. None, and a failure in the
// file's status, for one that is not valid or not supported.
std::optional<Pattern> ReadPattern(const JsonFields& fields);

// Reads text that a step puts in: of few bytes, which bounds how a text grows. A failure in the
// file's status for more.
std::string ReadContent(const JsonFields& fields, absl::string_view key);

}  // namespace attendant
