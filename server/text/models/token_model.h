// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/base/token_trie.h"

namespace attendant {

class JsonFields;

inline constexpr int64_t kMaxTokenId = std::numeric_limits<int32_t>::max() - 1;
inline constexpr size_t kMaxVocabularyBytes = size_t{16} << 20;  // 120,000 real words have 1 MiB

struct VocabularyEntry {
  std::string token;
  int32_t id = 0;
};

// The bytes of a piece that a token stands for, from `begin` to `end`.
struct ByteSpan {
  size_t begin = 0;
  size_t end = 0;
};

// Turns a piece of text into ids. Immutable, thread-safe.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Appends the ids of `piece`, and their spans unless `spans` is null. Time is at most n log n in
  // its bytes (times the longest token); memory at most 64 bytes for each byte. REQUIRES: valid
  // UTF-8.
  virtual void Append(absl::string_view piece, std::vector<int32_t>& ids,
                      std::vector<ByteSpan>* spans) const = 0;

  // The id whose tokens the `tokenizers` library calls by the text that they stand for, all others
  // by the vocabulary's string; TokenTrie::kNoId: none.
  virtual int32_t id_called_by_text() const { return TokenTrie::kNoId; }

  // The id of a token of the vocabulary, or TokenTrie::kNoId.
  virtual int32_t FindToken(absl::string_view token) const = 0;

  // The prefix of tokens that continue a word. Empty: the model has none.
  virtual absl::string_view continuing_prefix() const { return {}; }
};

// A model and the tokens that it knows, each id once.
struct ModelPart {
  std::unique_ptr<TokenModel> model;
  std::vector<VocabularyEntry> vocabulary;
};

// The type of the file's `model`. The files of the format's first year give none, those of GPT-2,
// RoBERTa, XLM-R and T5 among them: there the fields tell.
std::string ModelType(const JsonFields& file);

// Reads the file's `model`. No model, and a failure in the file's status, for one that is not
// supported.
ModelPart ReadModel(const JsonFields& file);

// Reads a vocabulary that maps tokens to ids, for the readers of models. Failures go to the file's
// status.
std::vector<VocabularyEntry> ReadVocabulary(const JsonFields& vocab);

// Refuses tokens of more than kMaxVocabularyBytes in all. `path` names them.
void CheckVocabularyBytes(const JsonFields& fields, absl::string_view path, size_t bytes);

}  // namespace attendant
