// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// A map from ids to the strings of a vocabulary, which may have gaps: all strings lie in one block.
//
//   entries_   (id, end of its string in strings_), by id; a string begins where the last one ends
//
// Filled, then sealed, then immutable and thread-safe.
class TokenStrings {
 public:
  // An id's first string counts. REQUIRES: valid UTF-8.
  void Add(int32_t id, absl::string_view token);
  // After the last Add, before the first Find.
  void Seal();

  // Empty for an unknown id. Holds as long as this object.
  absl::string_view Find(int32_t id) const;

 private:
  struct Entry {
    int32_t id = 0;
    size_t end = 0;
  };

  std::vector<std::pair<int32_t, std::string>> added_;  // until Seal
  std::vector<Entry> entries_;
  std::string strings_;
};

}  // namespace attendant
