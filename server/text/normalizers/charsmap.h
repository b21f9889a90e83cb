// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Sentencepiece's table of what to replace characters with:
//
//   bytes of the units: u32, little-endian; the units: u32 each; the replacements, each ended by 0
//
// The units are a double-array trie of darts-clone, from keys to offsets of replacements:
//
//   an inner unit   label of the edge to it (8 bits), has a leaf (bit 8), offset (bits 9 to 30)
//   a leaf          offset of the replacement (31 bits)
//
// Immutable, thread-safe.
class Charsmap {
 public:
  static constexpr size_t kMaxReplacementBytes = 64;  // sentencepiece's own longest has 33

  // INVALID_ARGUMENT unless all leaves that can be reached lie inside `bytes` and each of
  // their replacements is UTF-8 of at most kMaxReplacementBytes.
  static absl::StatusOr<Charsmap> Parse(absl::string_view bytes);

  // A text becomes at most so many times as long, at least 1.
  double times() const { return times_; }

  // The replacement of the shortest key that `text` begins with. Holds as long as this object.
  std::optional<absl::string_view> Find(absl::string_view text) const;

 private:
  Charsmap() = default;
  absl::Status CheckUnits();
  absl::Status CheckReplacement(uint32_t offset, size_t key_bytes);

  std::vector<uint32_t> units_;
  std::string replacements_;
  double times_ = 1;
};

}  // namespace attendant
