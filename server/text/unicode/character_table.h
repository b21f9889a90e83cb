// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attendant {

// The values of a function for all characters below U+10000, in a table of 64 KiB. Nearly all text
// is made of these characters, and ICU's tables are slower. Immutable, thread-safe.
class CharacterTable {
 public:
  using Function = uint8_t (*)(char32_t character);

  explicit CharacterTable(Function function) : function_(function), values_(kSize) {
    for (char32_t c = 0; c < kSize; ++c) values_[c] = function(c);
  }

  uint8_t operator()(char32_t character) const {
    return character < kSize ? values_[character] : function_(character);
  }

 private:
  static constexpr size_t kSize = 0x10000;

  Function function_;
  std::vector<uint8_t> values_;  // [kSize]
};

}  // namespace attendant
