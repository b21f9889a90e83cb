// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>

#include "server/text/pre_tokenizers/pre_tokenizer_kinds.h"
#include "server/text/pre_tokenizers/word_reader.h"

namespace attendant {
namespace {

class BertPreTokenizer final : public PreTokenizer {
 public:
  bool Split(const Piece& piece, Visitor visit) const override {
    WordReader words(piece.text);
    for (absl::string_view word = words.Next(); !word.empty(); word = words.Next()) {
      const auto begin = static_cast<size_t>(word.data() - piece.text.data());
      if (!visit(piece.Part(begin, begin + word.size()))) return false;
    }
    return true;
  }
  bool cuts_at_spaces() const override { return true; }
};

}  // namespace

std::unique_ptr<PreTokenizer> ReadBertPreTokenizer(const JsonFields&) {
  return std::make_unique<BertPreTokenizer>();
}

}  // namespace attendant
