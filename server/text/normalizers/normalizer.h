// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/text/base/growth.h"

namespace attendant {

class AlignedText;
struct BertNormalizerConfig;
// A step of a tokenizer.json that changes text before it is cut into pieces. Immutable,
// thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // Writes the normalized `text` to `out`. One that gets longer than `max_bytes` may end anywhere
  // beyond them. Time is linear in the text's bytes. REQUIRES: valid UTF-8, `out` is empty.
  virtual void Append(absl::string_view text, size_t max_bytes, std::string& out) const = 0;

  // Normalizes `text` in place: its bytes become those that Append gives, up to the text's own
  // max_bytes. Time is n log n.
  virtual void Align(AlignedText& text) const = 0;

  virtual Growth growth() const = 0;

  // True if a text may be cut before any space or line end, and its parts normalized one by one,
  // with the same result.
  virtual bool cuts_at_spaces() const { return false; }

  // True if three rules hold: normalized text begins with the result of its first character; only
  // whitespace becomes whitespace; no character becomes punctuation together with other characters.
  virtual bool keeps_start() const { return false; }
};

// Reads the file's `normalizer`, or takes `instead`, which counts in place of it. Null, and a
// failure in the file's status, for one that is not supported or makes texts too long. A file
// without a normalizer has none: null. With `lowercases`, text becomes lower case first.
std::unique_ptr<Normalizer> ReadNormalizer(const JsonFields& file, bool lowercases,
                                           const std::optional<BertNormalizerConfig>& instead);

}  // namespace attendant
