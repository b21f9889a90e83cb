// SPDX-License-Identifier: Apache-2.0
#include "server/text/normalizers/bert_normalizer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/text/base/aligned_text.h"
#include "server/text/base/json_fields.h"
#include "server/text/normalizers/normalizer_kinds.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/form_edits.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr char kDropped = static_cast<char>(0xFF);
constexpr char32_t kReplacementCharacter = 0xFFFD;
constexpr char32_t kCapitalIWithDot = 0x130;
constexpr char32_t kCombiningDotAbove = 0x307;

bool IsTabOrLineEnd(char32_t character) {
  return character == '\t' || character == '\n' || character == '\r';
}

// NUL is a control character.
bool IsCleanedAway(char32_t character) {
  if (IsTabOrLineEnd(character)) return false;
  return character == kReplacementCharacter || IsControl(character);
}

char NormalizeAscii(const BertNormalizerConfig& config, char character) {
  const auto code_point = static_cast<char32_t>(character);
  if (config.clean_text) {
    if (IsCleanedAway(code_point)) return kDropped;
    if (IsTabOrLineEnd(code_point)) return ' ';
  }
  const bool lower = config.lowercase && character >= 'A' && character <= 'Z';
  return lower ? static_cast<char>(character - 'A' + 'a') : character;
}

}  // namespace

struct BertNormalizer::Mark {
  char32_t character;
  uint8_t combining_class;
};

// Normalized text with, at its end, the marks whose order is not known before the next starter.
class BertNormalizer::Output {
 public:
  Output(const BertNormalizer& normalizer, std::string& text)
      : normalizer_(normalizer), text_(text) {}

  std::string& text() { return text_; }
  void AddMark(Mark mark) { marks_.push_back(mark); }
  void FlushMarks() {
    if (marks_.empty()) return;
    if (marks_.size() > 1) SortMarks();
    for (const Mark& mark : marks_) normalizer_.AppendCased(mark.character, text_);
    marks_.clear();
  }

 private:
  // Stable, and linear for a text that is nothing but marks.
  void SortMarks() {
    std::array<size_t, 257> places{};  // where the next mark of a class goes
    for (const Mark& mark : marks_) ++places[mark.combining_class + size_t{1}];
    for (size_t i = 1; i < places.size(); ++i) places[i] += places[i - 1];
    std::vector<Mark> sorted(marks_.size());
    for (const Mark& mark : marks_) sorted[places[mark.combining_class]++] = mark;
    marks_ = std::move(sorted);
  }

  const BertNormalizer& normalizer_;
  std::string& text_;
  std::vector<Mark> marks_;
};

BertNormalizer::BertNormalizer(const BertNormalizerConfig& config) : config_(config) {
  for (size_t i = 0; i < ascii_.size(); ++i) {
    ascii_[i] = NormalizeAscii(config, static_cast<char>(i));
  }
}

void BertNormalizer::Append(absl::string_view text, size_t max_bytes, std::string& out) const {
  Output output(*this, out);
  const char* position = text.data();
  const char* const end = position + text.size();
  while (position < end && out.size() <= max_bytes) {
    const auto byte = static_cast<unsigned char>(*position);
    if (byte >= 0x80) {
      AppendCharacter(NextCharacter(position), output);
    } else if (ascii_[byte] == kDropped) {
      ++position;  // the marks around it come together
    } else {
      output.FlushMarks();
      position = AppendAscii(position, end, out);
    }
  }
  output.FlushMarks();
}

// Appends the ASCII characters at `position`; returns where they end.
const char* BertNormalizer::AppendAscii(const char* position, const char* end,
                                        std::string& out) const {
  while (position < end && static_cast<unsigned char>(*position) < 0x80) {
    constexpr size_t kBlock = 256;
    char block[kBlock];
    size_t size = 0;
    const char* const block_end =
        static_cast<size_t>(end - position) < kBlock ? end : position + kBlock;
    for (; position < block_end; ++position) {
      const auto byte = static_cast<unsigned char>(*position);
      if (byte >= 0x80) break;
      block[size] = ascii_[byte];
      size += block[size] != kDropped;
    }
    out.append(block, size);
  }
  return position;
}

// The same in the library's steps, since a mark that is sorted comes from its new place.
void BertNormalizer::Align(AlignedText& text) const {
  text.Map([this](char32_t character, std::string& out) {
    if (!Clean(character)) return;
    const bool spaced = config_.handle_chinese_chars && IsChinese(character);
    if (spaced) out.push_back(' ');
    AppendUtf8(character, out);
    if (spaced) out.push_back(' ');
  });
  if (config_.strip_accents) {
    text.Apply(NormalFormEdits(NormalForm::kNfd, text.text(), text.max_bytes()));
  }
  text.Map([this](char32_t character, std::string& out) {
    if (!config_.strip_accents || !IsNonspacingMark(character)) AppendCased(character, out);
  });
}

// Whether the character stays.
bool BertNormalizer::Clean(char32_t& character) const {
  if (!config_.clean_text) return true;
  if (IsCleanedAway(character)) return false;
  if (IsWhitespace(character)) character = ' ';
  return true;
}

void BertNormalizer::AppendCharacter(char32_t character, Output& output) const {
  if (!Clean(character)) return;
  const bool spaced = config_.handle_chinese_chars && IsChinese(character);
  if (spaced) {
    output.FlushMarks();
    output.text().push_back(' ');
  }
  if (config_.strip_accents) {
    AppendDecomposed(character, output);
  } else {
    AppendCased(character, output.text());
  }
  if (spaced) output.text().push_back(' ');
}

// A nonspacing mark is dropped after sorting: as a starter it still parts the marks around it.
void BertNormalizer::AppendDecomposed(char32_t character, Output& output) const {
  const Decomposition parts = Decompose(character);
  for (int i = 0; i < parts.count; ++i) {
    const char32_t part = parts.characters[i];
    const uint8_t combining_class = CombiningClass(part);
    if (combining_class == 0) output.FlushMarks();
    if (IsNonspacingMark(part)) continue;
    if (combining_class == 0) {
      AppendCased(part, output.text());
    } else {
      output.AddMark({part, combining_class});
    }
  }
}

void BertNormalizer::AppendCased(char32_t character, std::string& out) const {
  if (!config_.lowercase) {
    AppendUtf8(character, out);
  } else if (character == kCapitalIWithDot) {
    out.push_back('i');
    AppendUtf8(kCombiningDotAbove, out);
  } else {
    AppendUtf8(Lowercase(character), out);
  }
}

std::unique_ptr<Normalizer> ReadBertNormalizer(const JsonFields& fields) {
  BertNormalizerConfig config;
  config.clean_text = fields.Bool("clean_text");
  config.handle_chinese_chars = fields.Bool("handle_chinese_chars");
  config.lowercase = fields.Bool("lowercase");
  config.strip_accents =
      fields.Has("strip_accents") ? fields.Bool("strip_accents") : config.lowercase;
  return std::make_unique<BertNormalizer>(config);
}

}  // namespace attendant
