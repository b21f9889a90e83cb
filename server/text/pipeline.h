// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/added_tokens.h"
#include "server/text/models/token_model.h"
#include "server/text/normalizers/normalizer.h"
#include "server/text/pre_tokenizers/pre_tokenizer.h"
#include "server/text/sequence_template.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_json.h"

namespace attendant {

// The tokenizer of any tokenizer.json. A text's way to ids:
//
//   raw text -> literal added tokens | text between them
//            -> normalizer -> normalized added tokens | text between them
//            -> pre-tokenizer -> pieces -> model
//
// then the special tokens around them.
class TokenizerPipeline final : public Tokenizer {
 public:
  // INVALID_ARGUMENT when two added tokens cannot be told apart, or the normalizer makes them too
  // long.
  static absl::StatusOr<std::unique_ptr<TokenizerPipeline>> Create(TokenizerParts parts);

  absl::StatusOr<TokenizedText> Tokenize(absl::string_view text,
                                         const TokenizerOptions& options) const override;
  absl::StatusOr<TokenizedText> TokenizePair(absl::string_view first, absl::string_view second,
                                             const TokenizerOptions& options) const override;
  SpecialTokens special_tokens() const override;
  absl::StatusOr<std::string> Decode(std::span<const int32_t> ids,
                                     bool skip_special_tokens) const override;
  absl::string_view TokenString(int32_t id) const override { return parts_.strings.Find(id); }
  absl::string_view DecodedString(int32_t id) const override;
  absl::string_view continuing_prefix() const override { return parts_.model->continuing_prefix(); }
  bool IsSpecial(int32_t id) const override { return special_ids_.contains(id); }
  TruncationSide truncation_side() const override {
    return parts_.truncates_left ? TruncationSide::kLeft : TruncationSide::kRight;
  }
  int64_t vocab() const override { return parts_.vocab; }

 private:
  struct Ids;

  explicit TokenizerPipeline(TokenizerParts parts);
  static void CutLongest(std::vector<Ids>& texts, size_t room);
  static absl::Status Truncate(std::vector<Ids>& texts, size_t room, PairTruncation pair);
  static TokenizedText Join(const std::vector<Ids>& texts, std::span<const TemplatePart> sequence);
  static absl::Status CheckOffsets(absl::string_view text, const TokenizerOptions& options);
  absl::Status AddTokens(const std::vector<AddedToken>& tokens);

  // Each appends ids, and stops with false as soon as they are enough, or with an error in them.
  bool AppendText(absl::string_view text, Ids& ids) const;
  bool AppendRawText(Piece raw, Ids& ids) const;
  bool AppendPieces(const Piece& normalized, Ids& ids) const;
  bool AppendIds(const Piece& piece, Ids& ids) const;
  absl::string_view TakeChunk(absl::string_view& text) const;
  // None, and an error in `ids`, when the text becomes too long.
  std::optional<Piece> Normalize(const Piece& raw, Ids& ids) const;

  // `what` they are: "text", "pair of texts".
  absl::StatusOr<TokenizedText> Assemble(std::span<const absl::string_view> texts,
                                         std::span<const TemplatePart> sequence,
                                         absl::string_view what,
                                         const TokenizerOptions& options) const;

  TokenizerParts parts_;
  bool in_chunks_;  // text is normalized in chunks, cut at spaces
  absl::flat_hash_set<int32_t> special_ids_;
  absl::flat_hash_set<std::string> special_contents_;
  absl::flat_hash_map<int32_t, std::string> decoded_strings_;  // where TokenString differs
  AddedTokens raw_tokens_;
  AddedTokens normalized_tokens_;
};

}  // namespace attendant
