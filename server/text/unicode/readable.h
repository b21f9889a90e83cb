// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// A text of anybody, fit for a line of a log or a terminal: cut after `max_bytes`, between
// characters, with control characters (Unicode's Cc) and bytes that are no UTF-8 escaped as C does.
std::string Readable(absl::string_view text, size_t max_bytes);

// A name in a file, between quotes, for an error: tokens are seldom ASCII.
std::string ReadableName(absl::string_view name);

}  // namespace attendant
