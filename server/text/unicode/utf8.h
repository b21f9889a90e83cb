// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// Offset of the first byte that does not belong to a well-formed UTF-8 sequence (overlong forms,
// surrogates, values above U+10FFFF and cut-off sequences are not well-formed); none when all do.
std::optional<size_t> FindInvalidUtf8(absl::string_view text);

// Appends `bytes`, with U+FFFD for each sequence that is not well-formed: the longest beginning of
// a well-formed one, else a single byte (as the Unicode standard recommends, section 3.9).
void AppendWellFormed(absl::string_view bytes, std::string& out);

// The number of bytes of the character that begins with this byte. REQUIRES: valid UTF-8.
inline size_t CharacterBytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// REQUIRES: valid UTF-8.
int64_t CountCharacters(absl::string_view text);

// Reads the character at `position` and moves past it. REQUIRES: valid UTF-8, `position` at the
// start of a character.
inline char32_t NextCharacter(const char*& position) {
  const auto byte = [&] { return static_cast<unsigned char>(*position++); };
  const auto tail = [&](char32_t head) { return head << 6 | (byte() & 0x3Fu); };
  const char32_t first = byte();
  if (first < 0x80) return first;
  if (first < 0xE0) return tail(first & 0x1F);
  if (first < 0xF0) return tail(tail(first & 0x0F));
  return tail(tail(tail(first & 0x07)));
}

// The beginning of the character before `position`. REQUIRES: valid UTF-8, `position` after a whole
// character.
inline const char* CharacterBefore(const char* position) {
  do --position;
  while ((static_cast<unsigned char>(*position) & 0xC0) == 0x80);
  return position;
}

// The character before `position`. REQUIRES: as CharacterBefore.
inline char32_t PreviousCharacter(const char* position) {
  position = CharacterBefore(position);
  return NextCharacter(position);
}

inline void AppendUtf8(char32_t character, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto put_tail = [&](int shift) { put(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | character >> 6), put_tail(0);
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12), put_tail(6), put_tail(0);
  } else {
    put(0xF0 | character >> 18), put_tail(12), put_tail(6), put_tail(0);
  }
}

}  // namespace attendant
