// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/utf8.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace attendant {
namespace {

// The first offset at or after `offset` that may hold something else than ASCII.
size_t SkipAscii(absl::string_view text, size_t offset) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  for (uint64_t word; offset + sizeof(word) <= text.size(); offset += sizeof(word)) {
    std::memcpy(&word, text.data() + offset, sizeof(word));
    if ((word & kHighBits) != 0) break;
  }
  return offset;
}

}  // namespace

std::optional<size_t> FindInvalidUtf8(absl::string_view text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  size_t offset = SkipAscii(text, 0);
  while (offset < text.size()) {
    const size_t start = offset;
    UChar32 character;
    U8_NEXT(bytes, offset, text.size(), character);
    if (character < 0) return start;
    if (character < 0x80) offset = SkipAscii(text, offset);
  }
  return std::nullopt;
}

int64_t CountCharacters(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;  // the first one of a character
  });
}

void AppendWellFormed(absl::string_view bytes, std::string& out) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  for (size_t offset = 0; offset < bytes.size();) {
    const size_t start = offset;
    UChar32 character;
    U8_NEXT(data, offset, bytes.size(), character);
    if (character < 0) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(bytes.data() + start, offset - start);
    }
  }
}

}  // namespace attendant
