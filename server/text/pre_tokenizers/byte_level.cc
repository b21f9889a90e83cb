// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/pre_tokenizers/pre_tokenizer_kinds.h"
#include "server/text/unicode/pattern.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

// GPT-2's.
constexpr absl::string_view kWords =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

const Pattern& Words() {
  static const Pattern& pattern = *new Pattern(*Pattern::Parse(kWords));
  return pattern;
}

// Each byte as a character that can be seen: those of Latin-1 as they are, the others from U+0100.
std::array<std::string, 256> ListByteCharacters() {
  std::array<std::string, 256> characters;
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < characters.size(); ++byte) {
    const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    AppendUtf8(visible ? byte : next++, characters[byte]);
  }
  return characters;
}

void AppendByteCharacters(absl::string_view bytes, std::string& out) {
  static const auto& characters = *new std::array<std::string, 256>(ListByteCharacters());
  for (const char byte : bytes) out += characters[static_cast<unsigned char>(byte)];
}

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  bool Split(const Piece& piece, Visitor visit) const override {
    std::string spaced;
    absl::string_view text = piece.text;
    if (add_prefix_space_ && !text.empty() && text[0] != ' ') {
      text = spaced = absl::StrCat(" ", text);
    }
    std::string word;
    for (size_t done = 0; done < text.size();) {
      const size_t end = use_regex_ ? Words().Find(text, done).end : text.size();
      word.clear();
      AppendByteCharacters(text.substr(done, end - done), word);
      if (!visit({word, piece.starts_input && done == 0})) return false;
      done = end;
    }
    return true;
  }

 private:
  bool add_prefix_space_;
  bool use_regex_;  // matches every text from its beginning to its end
};

}  // namespace

std::unique_ptr<PreTokenizer> ReadByteLevel(const JsonFields& fields) {
  const bool use_regex = !fields.Has("use_regex") || fields.Bool("use_regex");
  return std::make_unique<ByteLevel>(fields.Bool("add_prefix_space"), use_regex);
}

}  // namespace attendant
