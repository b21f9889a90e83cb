// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// Converts between byte offsets and character offsets of a text. The time of a lookup does not
// depend on the offset. Views the text.
class CharacterIndex {
 public:
  // REQUIRES: valid UTF-8 of less than 4 GiB.
  explicit CharacterIndex(absl::string_view text);

  // The characters that begin before byte `at`. REQUIRES: at <= the text's bytes.
  size_t CountBefore(size_t at) const;
  // The byte where the character with this number begins, from 0 on; where the text ends for the
  // number of its characters. REQUIRES: no larger number.
  size_t ByteOf(size_t character) const;

 private:
  absl::string_view text_;
  std::vector<uint32_t> before_;  // of each block: CountBefore its first byte
};

}  // namespace attendant
