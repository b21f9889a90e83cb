// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace attendant::client {

// Token ids as the model takes them, special tokens included. segment_ids are what Hugging Face
// calls token_type_ids.
struct TokenIds {
  std::vector<int32_t> token_ids = {};       // [len]
  std::vector<int32_t> segment_ids = {};     // [len], or empty: all 0
  std::vector<uint8_t> attention_mask = {};  // [len], or empty: all 1; 0 hides a token
};

// Two UTF-8 texts that become one sequence. For a reranker: the query and a passage.
struct TextPair {
  std::string first = {}, second = {};
};

// UTF-8 text, a pair of texts, or token ids.
using Sequence = std::variant<std::string, TextPair, TokenIds>;

// Tokens [begin, end) of a sequence, from 0, special tokens counted.
struct TokenSpan {
  int32_t begin = 0, end = 0;
};

}  // namespace attendant::client
