// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// What came from a client or out of a file, fit for an error message or a log: cut after
// `max_bytes`, escaped to printable ASCII, between `mark`s.
std::string Quote(absl::string_view text, char mark = '\'', size_t max_bytes = 64);

}  // namespace attendant
