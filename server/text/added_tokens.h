// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/text/base/token_trie.h"

namespace attendant {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  // ignored where it touches a word character
  bool lstrip = false;       // swallows the whitespace before it
  bool rstrip = false;       // swallows the whitespace after it
  bool normalized = false;   // looked for in normalized text instead of raw text
  bool special = false;      // no part of a text: decoding may leave it out
  bool is_text = false;      // where it stands it is text, and no shorter token is found in it
};

// Finds tokens that stand literally in a text, such as "[SEP]": the leftmost one, and of several
// there the longest. Immutable once filled, then thread-safe.
class AddedTokens {
 public:
  // INVALID_ARGUMENT when the content is empty or there already. REQUIRES: valid UTF-8, fewer than
  // TokenTrie::kMaxNodes bytes in all.
  absl::Status Add(AddedToken token);

  bool empty() const { return tokens_.empty(); }

  // A part of a text, never empty: an added token with what it swallows, or the text between two.
  struct Part {
    int32_t id = TokenTrie::kNoId;  // of a token
    absl::string_view text;
  };

  // Hands out the parts of `text` in order until `visit` returns false; returns whether it never
  // did. Time is linear in the text's bytes (times the longest token). REQUIRES: valid UTF-8.
  bool Split(absl::string_view text, absl::FunctionRef<bool(const Part&)> visit) const;

 private:
  // The place of a token in the text, with the whitespace that it swallows.
  struct Place {
    const AddedToken* token = nullptr;  // none: no more tokens
    size_t begin = 0;
    size_t end = 0;
  };

  Place Find(absl::string_view text, size_t from) const;
  static bool IsPartOfWord(absl::string_view text, const Place& place);
  static Place Widen(absl::string_view text, size_t from, size_t run_end, Place place);

  std::vector<AddedToken> tokens_;
  TokenTrie trie_;                // content to index in tokens_
  std::bitset<256> first_bytes_;  // of the tokens' contents
};

}  // namespace attendant
