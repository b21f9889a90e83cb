// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/base/token_trie.h"
#include "server/text/models/token_model.h"

namespace attendant {

struct ScoredToken {
  std::string token;
  double score = 0;  // log probability
};

struct UnigramConfig {
  std::vector<ScoredToken> vocabulary;  // by id; of a token that is there twice the last counts
  int32_t unk_id = 0;                   // below the size of the vocabulary
  bool byte_fallback = false;           // an unknown run is its bytes, "<0xE4>"
};

// Sentencepiece's unigram model: the tokens of a piece whose scores have the largest sum. A
// character without a token scores 10 less than the worst token; unknown characters in a row are
// one token. Sums are in double and the first of equal ones counts, as in the library. Immutable,
// thread-safe.
class Unigram final : public TokenModel {
 public:
  // REQUIRES: the vocabulary's tokens have fewer than TokenTrie::kMaxNodes bytes.
  explicit Unigram(const UnigramConfig& config);

  // Memory: 16 bytes for each byte between two places that no token reaches across.
  void Append(absl::string_view piece, std::vector<int32_t>& ids,
              std::vector<ByteSpan>* spans) const override;
  int32_t FindToken(absl::string_view token) const override { return trie_.FindId(token); }
  int32_t id_called_by_text() const override { return unk_id_; }

 private:
  class Path;

  size_t AddTokens(absl::string_view piece, size_t at, Path& path) const;
  void AppendUnknown(absl::string_view run, std::vector<int32_t>& ids) const;

  TokenTrie trie_;
  std::vector<double> scores_;  // by id
  double unk_score_ = 0;
  int32_t unk_id_;
  bool byte_fallback_;                   // and all bytes have tokens that may be used
  std::array<int32_t, 256> byte_ids_{};  // or kNoId
};

}  // namespace attendant
