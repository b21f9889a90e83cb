// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/text/base/literals.h"
#include "server/text/sentencepiece/families.h"
#include "server/text/sentencepiece/family_parts.h"
#include "server/text/sentencepiece/model_proto.h"

namespace attendant {

// The settings of tokenizer_config.json.
struct SentencePieceOptions {
  FamilyOptions parts{};
  int64_t extra_ids = 0;
  bool keeps_own_literals = true;  // the model's own control and user-defined pieces, extra_ids
};

// Makes one tokenizer.json.
class SentencePieceConverter {
 public:
  // Views all three. REQUIRES: the model's first pieces are those that the family expects.
  SentencePieceConverter(const SentencePieceFamily& family, const SentencePieceModel& model,
                         const SentencePieceOptions& options);

  // Null: no such token.
  Literal* FindLiteral(absl::string_view text);
  // The first of the same text counts.
  void AddLiteral(Literal literal);
  bool Knows(absl::string_view text) const { return ids_.contains(text); }
  // The vocabulary's, else the next one behind all.
  int64_t IdOf(absl::string_view text);
  std::string Json();

 private:
  struct ScoredPiece {
    absl::string_view text;
    double score = 0;
  };

  void AddToken(absl::string_view text, double score);
  void ListTokens();
  std::string Literals();
  std::string Vocabulary() const;

  const SentencePieceFamily& family_;
  const SentencePieceModel& model_;
  const SentencePieceOptions& options_;
  std::vector<std::string> extra_tokens_;
  std::vector<ScoredPiece> tokens_;  // by id
  std::vector<Literal> literals_;
  absl::flat_hash_map<std::string, size_t> literal_places_;
  absl::flat_hash_map<std::string, int64_t> ids_;
  int64_t next_id_ = 0;
};

}  // namespace attendant
