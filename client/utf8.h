// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace attendant::client {

// The offset of the first code point that is not valid UTF-8, or npos.
size_t FindInvalidUtf8(absl::string_view text);

}  // namespace attendant::client
