// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "server/text/base/json_fields.h"
#include "server/text/unicode/pattern.h"

namespace attendant {

// Reads the member `pattern`: {"String": "..."} or {"Regex": "..."}. None, and a failure in the
// file's status, for one that is not valid or not supported.
std::optional<Pattern> ReadPattern(const JsonFields& fields);

}  // namespace attendant
