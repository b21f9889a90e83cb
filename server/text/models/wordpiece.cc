// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/wordpiece.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "server/text/models/model_kinds.h"
#include "server/text/unicode/utf8.h"

namespace attendant {

WordPiece::WordPiece(const WordPieceConfig& config)
    : continuing_prefix_(config.continuing_subword_prefix),
      unk_id_(config.unk_id),
      max_input_chars_per_word_(config.max_input_chars_per_word) {
  for (const VocabularyEntry& entry : config.vocabulary) trie_.Insert(entry.token, entry.id);
  continuing_node_ = trie_.Find(config.continuing_subword_prefix).node;
}

void WordPiece::Append(absl::string_view word, std::vector<int32_t>& ids,
                       std::vector<ByteSpan>* spans) const {
  const size_t ids_before = ids.size();
  const size_t spans_before = spans == nullptr ? 0 : spans->size();
  if (!IsTooLong(word) && AppendPieces(word, ids, spans)) return;
  ids.resize(ids_before);
  ids.push_back(unk_id_);
  if (spans == nullptr) return;
  spans->resize(spans_before);
  spans->push_back({0, word.size()});
}

bool WordPiece::IsTooLong(absl::string_view word) const {
  if (static_cast<int64_t>(word.size()) <= max_input_chars_per_word_) return false;
  return CountCharacters(word) > max_input_chars_per_word_;
}

// False when some part of the word is in no piece.
bool WordPiece::AppendPieces(absl::string_view word, std::vector<int32_t>& ids,
                             std::vector<ByteSpan>* spans) const {
  const char* const begin = word.data();
  uint32_t node = TokenTrie::kRoot;
  while (!word.empty()) {
    if (node == TokenTrie::kNoNode) return false;
    const TokenTrie::Match piece = trie_.FindLongest(node, word);
    if (piece.id == TokenTrie::kNoId) return false;
    ids.push_back(piece.id);
    if (spans != nullptr) {
      const auto at = static_cast<size_t>(word.data() - begin);
      spans->push_back({at, at + piece.bytes});
    }
    word.remove_prefix(piece.bytes);
    node = continuing_node_;
  }
  return true;
}

ModelPart ReadWordPiece(const JsonFields& fields) {
  WordPieceConfig config;
  const std::string unk_token = fields.String("unk_token");
  config.continuing_subword_prefix = fields.String("continuing_subword_prefix");
  config.max_input_chars_per_word =
      fields.Integer("max_input_chars_per_word", std::numeric_limits<int64_t>::max());
  const JsonFields vocab = fields.Object("vocab");
  if (!fields.ok()) return {};
  if (!vocab.Has(unk_token)) fields.Fail("unk_token", "is not in model.vocab");
  config.unk_id = static_cast<int32_t>(vocab.Integer(unk_token, kMaxTokenId));
  config.vocabulary = ReadVocabulary(vocab);
  if (!fields.ok()) return {};
  auto model = std::make_unique<WordPiece>(config);
  return {std::move(model), std::move(config.vocabulary)};
}

}  // namespace attendant
