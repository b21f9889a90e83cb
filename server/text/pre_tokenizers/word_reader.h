// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

namespace attendant {

// Cuts normalized text into words as a BertPreTokenizer does: whitespace parts words and is
// dropped, each punctuation character is a word of its own. The words point into the text.
class WordReader {
 public:
  // REQUIRES: `text` is valid UTF-8.
  explicit WordReader(absl::string_view text)
      : position_(text.data()), end_(text.data() + text.size()) {}

  // The next word, never empty; an empty one at the end.
  absl::string_view Next();

 private:
  const char* position_;
  const char* end_;
};

}  // namespace attendant
