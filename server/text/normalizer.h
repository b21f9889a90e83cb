// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// The steps of a BertNormalizer, in the order in which they are taken.
struct NormalizerConfig {
  bool clean_text = false;            // drop control characters, turn whitespace into spaces
  bool handle_chinese_chars = false;  // put spaces around ideographs
  bool strip_accents = false;         // decompose, then drop nonspacing marks
  bool lowercase = false;
};

// Immutable, thread-safe.
class Normalizer {
 public:
  explicit Normalizer(const NormalizerConfig& config);

  // Appends the normalized `text` to `out`. A text may be cut before any space or line end and
  // its parts normalized one by one. Time is linear in the text's bytes. REQUIRES: valid UTF-8.
  void Append(absl::string_view text, std::string& out) const;

 private:
  struct Mark;
  class Output;

  const char* AppendAscii(const char* position, const char* end, std::string& out) const;
  void AppendCharacter(char32_t character, Output& output) const;
  void AppendDecomposed(char32_t character, Output& output) const;
  void AppendCased(char32_t character, std::string& out) const;

  NormalizerConfig config_;
  std::array<char, 128> ascii_;  // by ASCII character: its replacement, or kDropped
};

}  // namespace attendant
