// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// Appends `text` in a normal form of Unicode 9, whose tables the `tokenizers` library has: newer
// characters stay as they are. At most 11 times the bytes of `text`. Time is n log n in them.
// REQUIRES: valid UTF-8 below 2^31 bytes.
void AppendNormalForm(NormalForm form, absl::string_view text, size_t max_bytes, std::string& out);

}  // namespace attendant
