// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

class AlignedText;
class JsonFields;

// A step of a tokenizer.json that changes text before it is cut into pieces. Immutable,
// thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // Appends the normalized `text` to `out`. Time is linear in the text's bytes. REQUIRES: valid
  // UTF-8.
  virtual void Append(absl::string_view text, std::string& out) const = 0;

  // Normalizes `text` in place: its bytes become those that Append gives. Time is n log n.
  virtual void Align(AlignedText& text) const = 0;

  // Whether a text may be cut before any space or line end and its parts normalized one by one.
  virtual bool cuts_at_spaces() const { return false; }

  // Whether normalized text begins with what its first character became, and no whitespace comes
  // of any other character.
  virtual bool keeps_start() const { return false; }
};

// Reads the file's `normalizer`. Null, and a failure in the file's status, for one that is not
// supported. A file without a normalizer has none: null. With `lowercases`, text becomes lower case
// first.
std::unique_ptr<Normalizer> ReadNormalizer(const JsonFields& file, bool lowercases);

}  // namespace attendant
