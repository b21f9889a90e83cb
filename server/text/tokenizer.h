// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_folder.h"

namespace attendant {

// The end of a text, or of each text of a pair, that is cut off.
enum class TruncationSide { kRight, kLeft };

// The text of a pair that is cut, as the strategies of transformers: the longer one first, or one
// alone.
enum class PairTruncation { kLongestFirst, kOnlyFirst, kOnlySecond };

// The unit of token offsets.
enum class OffsetUnit { kNone, kCharacters, kBytes };

struct TokenizerOptions {
  int64_t max_tokens = 0;  // special tokens included
  bool truncate = true;    // cut longer texts, keeping the special tokens; else refuse them
  TruncationSide side = TruncationSide::kRight;
  PairTruncation pair = PairTruncation::kLongestFirst;
  int64_t max_second_tokens = 0;  // > 0: the second text of a pair is cut to these before all else
  absl::string_view prompt{};     // valid UTF-8 that goes before the text; not for pairs
  bool special_tokens = true;     // false: none around a single text
  bool count = true;  // false: a text that is cut on the right is read as far as it is kept
  OffsetUnit offsets = OffsetUnit::kNone;
};

// The source of a token: [begin, end) of its text, the prompt included.
struct TokenOffset {
  uint32_t begin = 0;
  uint32_t end = 0;

  bool operator==(const TokenOffset&) const = default;
};
// The bytes of a token in its text, with U+FFFD for a part of a character. `offset` is in bytes.
std::string TextAt(absl::string_view text, TokenOffset offset);

struct TokenizedText {
  std::vector<int32_t> token_ids;    // [len]
  std::vector<int32_t> segment_ids;  // [len]
  // [len], or empty: not asked for. As the `tokenizers` library gives them; 0 to 0 for the special
  // tokens of the template.
  std::vector<TokenOffset> offsets;
  // Before the cut, special tokens included. Without TokenizerOptions::count, more than token_ids
  // where a text was cut.
  int64_t tokens_seen = 0;

  bool truncated() const { return tokens_seen > static_cast<int64_t>(token_ids.size()); }
};

// Text to token ids, exactly as a checkpoint's tokenizer.json says. Immutable after loading,
// thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // INVALID_ARGUMENT for invalid UTF-8 (with the byte's offset), for max_tokens below the number of
  // special tokens or, with truncate off, for a text of more than max_tokens. Time and memory are
  // linear in the text's bytes, time also in those of the longest token.
  virtual absl::StatusOr<TokenizedText> Tokenize(absl::string_view text,
                                                 const TokenizerOptions& options) const = 0;

  // Two texts as one sequence, a question and a passage: "[CLS] first [SEP] second [SEP]". Errors
  // as above, and INVALID_ARGUMENT when the tokenizer has no template for two texts, or when
  // nothing would be left of the only text that may be cut.
  virtual absl::StatusOr<TokenizedText> TokenizePair(absl::string_view first,
                                                     absl::string_view second,
                                                     const TokenizerOptions& options) const = 0;

  // The number of special tokens around the tokens of a text.
  struct SpecialTokens {
    size_t before = 0, after = 0;
  };
  virtual SpecialTokens special_tokens() const = 0;

  // The text of ids, as the checkpoint's decoder makes it: the tokens joined, subwords without
  // their marks. Ids without a token are left out, and with `skip_special_tokens` those of special
  // added tokens. UNIMPLEMENTED for a decoder that is not supported. Time and memory are linear in
  // the bytes of the ids' DecodedString.
  virtual absl::StatusOr<std::string> Decode(std::span<const int32_t> ids,
                                             bool skip_special_tokens) const = 0;

  // The token of an id, "##ing" or "[SEP]"; empty for an id that has no token.
  // Holds as long as the tokenizer.
  virtual absl::string_view TokenString(int32_t id) const = 0;

  // What Decode takes for an id, before the decoder: its token, but of added tokens what the
  // normalizer makes of those that are looked for in normalized text, also where the vocabulary has
  // another token with the id. Holds as long as the tokenizer.
  virtual absl::string_view DecodedString(int32_t id) const = 0;

  // The prefix of tokens that continue a word, "##". Empty: the tokenizer has no such prefix.
  virtual absl::string_view continuing_prefix() const = 0;

  // True if `id` is a special added token: [CLS], [UNK].
  virtual bool IsSpecial(int32_t id) const = 0;

  // The end that tokenizer.json cuts off, by default the right one. For tokenizer_config.json's
  // truncation_side to overrule.
  virtual TruncationSide truncation_side() const = 0;

  // Number of ids: every id that Tokenize gives is below it.
  virtual int64_t vocab() const = 0;
};

// The files of sentencepiece models, of which the first counts.
inline constexpr const char* kSentencePieceFiles[] = {"sentencepiece.bpe.model", "spiece.model",
                                                      "spm.model", "tokenizer.model"};

// Reads the tokenizer.json of `folder`. Of the checkpoint's own truncation entry the side counts,
// that of padding is ignored: both are the server's business. tokenizer_config.json beside it
// counts as for transformers (tokenizer_config.h). Without that file, one is made of the
// sentencepiece model (sentencepiece/convert.h). Where the class is ESM's and there is a vocab.txt,
// that file counts instead (esm/esm_vocabulary.h). NOT_FOUND without any of them; INVALID_ARGUMENT
// for a file that is not valid; UNIMPLEMENTED, naming the part, for a tokenizer type that is not
// supported. With `lowercases`, texts become lower case before the normalizer, as
// sentence-transformers has it.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const JsonFolder& folder,
                                                         bool lowercases = false);

}  // namespace attendant
