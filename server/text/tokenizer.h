// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

struct TokenizerOptions {
  int64_t max_tokens = 0;  // special tokens included
  bool truncate =
      true;  // cut longer texts on the right, keeping the special tokens; else refuse them
};

struct TokenizedText {
  std::vector<int32_t> token_ids;    // [len]
  std::vector<int32_t> segment_ids;  // [len]
  bool truncated = false;
};

// Text to token ids, exactly as a checkpoint's tokenizer.json says. Immutable after loading,
// thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // INVALID_ARGUMENT for invalid UTF-8 (with the byte's offset), for max_tokens below the number of
  // special tokens or, with truncate off, for a text of more than max_tokens. Time and memory are
  // linear in the text's bytes.
  virtual absl::StatusOr<TokenizedText> Tokenize(absl::string_view text,
                                                 const TokenizerOptions& options) const = 0;

  // Two texts as one sequence, a question and a passage: "[CLS] first [SEP] second [SEP]". The
  // longer one is cut first, on the right (`longest_first` of transformers). Errors as above, and
  // INVALID_ARGUMENT when tokenizer.json has no template for two texts.
  virtual absl::StatusOr<TokenizedText> TokenizePair(absl::string_view first,
                                                     absl::string_view second,
                                                     const TokenizerOptions& options) const = 0;

  // How many special tokens stand around those of a text.
  struct SpecialTokens {
    size_t before = 0, after = 0;
  };
  virtual SpecialTokens special_tokens() const = 0;

  // The token of an id, "##ing" or "[SEP]"; empty for an id that has no token.
  // Holds as long as the tokenizer.
  virtual absl::string_view TokenString(int32_t id) const = 0;

  // Number of ids: every id that Tokenize gives is below it.
  virtual int64_t vocab() const = 0;
};

// Reads `directory`/tokenizer.json. The checkpoint's own truncation and padding entries are
// ignored: both are the server's business. NOT_FOUND without the file; INVALID_ARGUMENT for a file
// that is not valid; UNIMPLEMENTED, naming the part, for a tokenizer type that is not supported.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& directory);

}  // namespace attendant
