// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// Text of a client or of a file, fit for an error message or a log: cut after `max_bytes`, escaped
// to printable ASCII, between two `mark`s.
std::string Quote(absl::string_view text, char mark = '\'', size_t max_bytes = 64);

// A name in a file, as every error of kernels/io shows it.
inline std::string Quoted(absl::string_view name) { return Quote(name, '`', 100); }

}  // namespace attendant
