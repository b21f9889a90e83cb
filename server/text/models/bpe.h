// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/base/token_trie.h"
#include "server/text/models/merge_table.h"
#include "server/text/models/token_model.h"

namespace attendant {

struct BpeConfig {
  std::vector<VocabularyEntry> vocabulary;  // tokens and ids are unique
  std::vector<Merge> merges;                // the first is done first; each makes the token of both
  int32_t unk_id = TokenTrie::kNoId;        // none: unknown characters are left out
  std::string continuing_subword_prefix;    // before every character but the first
  std::string end_of_word_suffix;           // after the last character
  bool fuse_unk = false;                    // unknown characters in a row are one token
  bool byte_fallback = false;               // an unknown character is its bytes, "<0xE4>"
  bool ignore_merges = false;               // a piece that is a token is this token
};

// Byte pair encoding: the characters of a piece, of which the pair that was merged first in
// training is merged again and again. Immutable, thread-safe.
class Bpe final : public TokenModel {
 public:
  // REQUIRES: the vocabulary's tokens have fewer than TokenTrie::kMaxNodes bytes.
  explicit Bpe(BpeConfig config);

  // Spans are as the library counts them, one token's after the other's: characters that are left
  // out do not count, and each byte of an affix does, so they may go beyond the piece.
  void Append(absl::string_view piece, std::vector<int32_t>& ids,
              std::vector<ByteSpan>* spans) const override;
  int32_t FindToken(absl::string_view token) const override { return trie_.FindId(token); }

 private:
  class Symbols;

  static constexpr size_t kMaxWholeIds = size_t{1} << 24;  // vocabularies have 2^18

  void FindWholeTokens(const std::vector<VocabularyEntry>& vocabulary);
  bool IsWhole(int32_t id) const {
    return static_cast<size_t>(id) < whole_.size() && whole_[static_cast<size_t>(id)];
  }
  void AppendMerged(absl::string_view piece, std::vector<int32_t>& ids,
                    std::vector<ByteSpan>* spans) const;
  bool AppendShort(absl::string_view piece, std::vector<int32_t>& ids,
                   std::vector<ByteSpan>* spans) const;
  void AddCharacters(absl::string_view piece, Symbols& symbols) const;
  int32_t FindCharacter(absl::string_view character, bool is_first, bool is_last) const;
  int32_t FindCharacter(absl::string_view character) const;  // without affixes
  bool AddBytes(absl::string_view character, bool is_first, bool is_last, Symbols& symbols) const;

  BpeConfig config_;  // without the vocabulary and the merges
  TokenTrie trie_;
  MergeTable merges_;
  // There are no affixes, and every merge makes the token of both strings, which is longer.
  bool plain_ = false;
  size_t max_whole_bytes_ = 0;           // longer pieces are not looked for as a whole
  std::vector<bool> whole_;              // by id: the merges make this token of its own text
  std::vector<int32_t> two_bytes_;       // by character below U+0800: its id, or kNoId
  std::array<int32_t, 256> byte_ids_{};  // of byte_fallback, or kNoId
};

}  // namespace attendant
