// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace attendant {

// The end of the extended grapheme cluster that begins at `position`, by the rules of Unicode 15
// with the marks of Unicode 17, as in the `tokenizers` library. Conjunct clusters of Indic scripts,
// new in 15.1, are not joined: the only caller treats clusters of 6 bytes and more by character.
// REQUIRES: valid UTF-8, position < end.
const char* FindGraphemeEnd(const char* position, const char* end);

}  // namespace attendant
