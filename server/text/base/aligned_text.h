// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/text/unicode/form_edits.h"

namespace attendant {

// A text, and where each of its bytes comes from: the place in the caller's text of the first byte
// of a character. Changes keep the places as the `tokenizers` library does. A text that gets longer
// than `max_bytes` is full, and may end anywhere beyond them. REQUIRES: valid UTF-8 everywhere.
class AlignedText {
 public:
  AlignedText() = default;
  // Aligns `text` with the caller's text, where it begins at byte `begin`.
  AlignedText(absl::string_view text, uint32_t begin, size_t max_bytes);
  // An empty text with the same max_bytes.
  AlignedText Empty() const;

  const std::string& text() const { return text_; }
  const std::vector<uint32_t>& sources() const { return sources_; }  // [text().size()]
  size_t max_bytes() const { return max_bytes_; }
  bool is_full() const { return text_.size() > max_bytes_; }

  void Append(absl::string_view text, uint32_t source);
  // The bytes of `from` from `begin` to `end`.
  void AppendPart(const AlignedText& from, size_t begin, size_t end);

  // Each character becomes what `write` appends for it, or nothing.
  void Map(absl::FunctionRef<void(char32_t, std::string&)> write);

  // Writes the text anew. A character that is put in comes from where the one before its place in
  // the old text comes from.
  void Apply(absl::Span<const CharacterEdit> edits);

 private:
  std::string text_;
  std::vector<uint32_t> sources_;
  size_t max_bytes_ = 0;
};

}  // namespace attendant
