// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/text/unicode/utf8.h"

namespace attendant {

// INVALID_ARGUMENT, with the place, where `text` is not well-formed. `of` follows in the message,
// as " of the second text".
inline absl::Status CheckUtf8(absl::string_view text, absl::string_view of = {}) {
  const std::optional<size_t> offset = FindInvalidUtf8(text);
  if (!offset.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("invalid UTF-8 at byte ", *offset, of));
}

}  // namespace attendant
