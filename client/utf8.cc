// SPDX-License-Identifier: Apache-2.0
#include "client/utf8.h"

#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

// The size of the code point that `text` begins with; 0 if it is not valid UTF-8.
size_t CodePointBytes(absl::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  const auto size = static_cast<size_t>(std::countl_one(lead));
  if (size < 2 || size > 4 || size > text.size()) return 0;
  uint32_t point = lead & (0x7fu >> size);
  for (const char c : text.substr(1, size - 1)) {
    const auto next = static_cast<uint8_t>(c);
    if ((next & 0xc0) != 0x80) return 0;
    point = point << 6 | (next & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // for each size
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < kLeast[size] || point > 0x10ffff || surrogate ? 0 : size;
}

}  // namespace

size_t FindInvalidUtf8(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = CodePointBytes(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return absl::string_view::npos;
}

absl::Status RequireUtf8(absl::string_view name, absl::string_view text) {
  const size_t at = FindInvalidUtf8(text);
  if (at == absl::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is not valid UTF-8 at byte ", at));
}

}  // namespace attendant::client
