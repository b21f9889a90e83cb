// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/unicode/normal_form.h"

namespace attendant {

// A character of a text that is written anew, beside the old text that is read from its beginning.
struct CharacterEdit {
  char32_t character = 0;
  // 0: takes the place of the next old character; -n: after which n more go; 1: is put in.
  int32_t change = 0;
};

// The edits by which AppendNormalForm makes the normal form of `text`, counted as in the
// `tokenizers` library. A character that decomposes is replaced by its first part, and the other
// parts are inserted. A character that composes with the one before is removed. Stops after more
// than `max_edits`. Time is n log n in the text's bytes. REQUIRES: valid UTF-8.
std::vector<CharacterEdit> NormalFormEdits(NormalForm form, absl::string_view text,
                                           size_t max_edits);

}  // namespace attendant
