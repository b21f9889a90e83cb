// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/base/token_trie.h"
#include "server/text/models/token_model.h"

namespace attendant {

struct WordPieceConfig {
  std::vector<VocabularyEntry> vocabulary;  // tokens and ids are unique
  int32_t unk_id = 0;                       // for a word that has no pieces
  std::string continuing_subword_prefix;    // before every piece of a word but its first
  int64_t max_input_chars_per_word = 0;     // longer words are unknown
};

// Words to ids: the longest piece of the vocabulary, again and again. Immutable, thread-safe.
class WordPiece final : public TokenModel {
 public:
  // REQUIRES: the vocabulary's tokens have fewer than TokenTrie::kMaxNodes bytes.
  explicit WordPiece(const WordPieceConfig& config);

  void Append(absl::string_view word, std::vector<int32_t>& ids,
              std::vector<ByteSpan>* spans) const override;
  int32_t FindToken(absl::string_view token) const override { return trie_.FindId(token); }
  absl::string_view continuing_prefix() const override { return continuing_prefix_; }

 private:
  bool IsTooLong(absl::string_view word) const;
  bool AppendPieces(absl::string_view word, std::vector<int32_t>& ids,
                    std::vector<ByteSpan>* spans) const;

  const std::string continuing_prefix_;
  TokenTrie trie_;
  uint32_t continuing_node_;  // where `continuing_subword_prefix` ends
  int32_t unk_id_;
  int64_t max_input_chars_per_word_;
};

}  // namespace attendant
