// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// Byte-level tokenizers write each byte as a character that can be seen: those of Latin-1 as they
// are, the others from U+0100 on.
namespace attendant {

// Appends the character of each byte.
void AppendByteCharacters(absl::string_view bytes, std::string& out);

// The byte that a character stands for.
std::optional<char> ByteOfCharacter(char32_t character);

}  // namespace attendant
