// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/text/base/byte_characters.h"
#include "server/text/pre_tokenizers/pre_tokenizer_kinds.h"
#include "server/text/unicode/pattern.h"

namespace attendant {
namespace {

// GPT-2's.
constexpr absl::string_view kWords =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

const Pattern& Words() {
  static const Pattern& pattern = *new Pattern(*Pattern::Parse(kWords));
  return pattern;
}

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  bool Split(const Piece& piece, Visitor visit) const override {
    std::string spaced;
    std::vector<uint32_t> spaced_sources;
    Piece text = piece;
    if (add_prefix_space_ && !text.text.empty() && text.text[0] != ' ') {
      text.text = spaced = absl::StrCat(" ", piece.text);
      text.sources = SpaceSources(piece, spaced_sources);
    }
    std::string word;
    std::vector<uint32_t> sources;
    std::optional<Pattern::Matcher> words;
    if (use_regex_) words.emplace(Words(), text.text);
    for (size_t done = 0; done < text.text.size();) {
      const size_t end = use_regex_ ? words->Find(done).end : text.text.size();
      Piece part = text.Part(done, end);
      word.clear();
      if (part.sources == nullptr) {
        AppendByteCharacters(part.text, word);
      } else {
        part.sources = AppendAligned(part, word, sources);
      }
      part.text = word;
      if (!visit(part)) return false;
      done = end;
    }
    return true;
  }

  bool parts_characters(bool /*normalized*/) const override { return true; }
  // Two bytes for a byte, and for the space before it.
  Growth growth() const override { return {.times = add_prefix_space_ ? 4.0 : 2.0}; }

 private:
  // Of the piece and a space before it, which seems to come from the first character.
  static const uint32_t* SpaceSources(const Piece& piece, std::vector<uint32_t>& sources) {
    if (piece.sources == nullptr) return nullptr;
    sources.assign(piece.sources, piece.sources + piece.text.size());
    sources.insert(sources.begin(), piece.sources[0]);
    return sources.data();
  }

  // AppendByteCharacters, and the sources of what it appends.
  static const uint32_t* AppendAligned(const Piece& part, std::string& word,
                                       std::vector<uint32_t>& sources) {
    sources.clear();
    sources.reserve(2 * part.text.size());
    for (size_t i = 0; i < part.text.size(); ++i) {
      AppendByteCharacters(part.text.substr(i, 1), word);
      sources.resize(word.size(), part.sources[i]);
    }
    return sources.data();
  }

  bool add_prefix_space_;
  bool use_regex_;  // matches every text from its beginning to its end
};

}  // namespace

std::unique_ptr<PreTokenizer> ReadByteLevel(const JsonFields& fields) {
  const bool use_regex = !fields.Has("use_regex") || fields.Bool("use_regex");
  return std::make_unique<ByteLevel>(fields.Bool("add_prefix_space"), use_regex);
}

}  // namespace attendant
