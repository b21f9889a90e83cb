// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/added_tokens.h"
#include "server/text/normalizer.h"
#include "server/text/sequence_template.h"
#include "server/text/token_strings.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_json.h"
#include "server/text/wordpiece.h"

namespace attendant {

// BERT's tokenizer. A text's way to ids:
//
//   raw text -> literal added tokens | text between them
//            -> normalizer -> normalized added tokens | text between them
//            -> words -> pieces
//
// then the special tokens around them.
class BertTokenizer final : public Tokenizer {
 public:
  // INVALID_ARGUMENT when two added tokens cannot be told apart.
  static absl::StatusOr<std::unique_ptr<BertTokenizer>> Create(const TokenizerConfig& config);

  absl::StatusOr<TokenizedText> Tokenize(absl::string_view text,
                                         const TokenizerOptions& options) const override;
  absl::string_view TokenString(int32_t id) const override { return token_strings_.Find(id); }
  int64_t vocab() const override { return vocab_; }

 private:
  struct Ids;

  explicit BertTokenizer(const TokenizerConfig& config);
  absl::Status AddTokens(const std::vector<AddedToken>& tokens);

  // Each appends ids, and stops with false as soon as they are enough.
  bool AppendText(absl::string_view text, Ids& ids) const;
  bool AppendRawText(absl::string_view text, Ids& ids) const;
  bool AppendWords(absl::string_view normalized, Ids& ids) const;
  absl::string_view TakeChunk(absl::string_view& text) const;

  size_t num_special_tokens() const { return sequence_.before.size() + sequence_.after.size(); }
  TokenizedText AddSpecialTokens(const std::vector<int32_t>& ids) const;

  AddedTokens raw_tokens_;
  Normalizer normalizer_;
  AddedTokens normalized_tokens_;
  WordPiece wordpiece_;
  SequenceTemplate sequence_;
  TokenStrings token_strings_;
  int64_t vocab_;
};

}  // namespace attendant
