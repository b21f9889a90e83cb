// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "server/text/normalizers/normalizer.h"

namespace attendant {

// The steps of a BertNormalizer, in the order in which they are taken.
struct BertNormalizerConfig {
  bool clean_text = false;            // drop control characters, turn whitespace into spaces
  bool handle_chinese_chars = false;  // put spaces around ideographs
  bool strip_accents = false;         // decompose, then drop nonspacing marks
  bool lowercase = false;
};

// Immutable, thread-safe.
class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const BertNormalizerConfig& config);

  void Append(absl::string_view text, size_t max_bytes, std::string& out) const override;
  void Align(AlignedText& text) const override;
  Growth growth() const override { return {.times = 3}; }
  bool cuts_at_spaces() const override { return true; }

 private:
  struct Mark;
  class Output;

  const char* AppendAscii(const char* position, const char* end, std::string& out) const;
  bool Clean(char32_t& character) const;
  void AppendCharacter(char32_t character, Output& output) const;
  void AppendDecomposed(char32_t character, Output& output) const;
  void AppendCased(char32_t character, std::string& out) const;

  BertNormalizerConfig config_;
  std::array<char, 128> ascii_;  // by ASCII character: its replacement, or kDropped
};

}  // namespace attendant
