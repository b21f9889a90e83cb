// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant::client {

// How a file may begin that a program of Windows wrote; no part of its text.
inline constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The offset of the first code point that is not valid UTF-8, or npos.
size_t FindInvalidUtf8(absl::string_view text);

// INVALID_ARGUMENT, "`name` is not valid UTF-8 at byte 3", if it is not.
absl::Status RequireUtf8(absl::string_view name, absl::string_view text);

}  // namespace attendant::client
