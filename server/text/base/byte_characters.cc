// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/byte_characters.h"

#include <array>
#include <vector>

#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

struct ByteCharacters {
  std::array<std::string, 256> of_byte;   // UTF-8
  std::vector<std::optional<char>> byte;  // by character
};

const ByteCharacters& Table() {
  static const ByteCharacters& table = *[] {
    auto* made = new ByteCharacters;
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < made->of_byte.size(); ++byte) {
      const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      const char32_t character = visible ? byte : next++;
      AppendUtf8(character, made->of_byte[byte]);
      if (made->byte.size() <= character) made->byte.resize(character + 1);
      made->byte[character] = static_cast<char>(byte);
    }
    return made;
  }();
  return table;
}

}  // namespace

void AppendByteCharacters(absl::string_view bytes, std::string& out) {
  for (const char byte : bytes) out += Table().of_byte[static_cast<unsigned char>(byte)];
}

std::optional<char> ByteOfCharacter(char32_t character) {
  const std::vector<std::optional<char>>& byte = Table().byte;
  return character < byte.size() ? byte[character] : std::nullopt;
}

}  // namespace attendant
