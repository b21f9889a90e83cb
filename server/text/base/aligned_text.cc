// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/aligned_text.h"

#include <algorithm>
#include <utility>

#include "server/text/unicode/utf8.h"

namespace attendant {

AlignedText::AlignedText(absl::string_view text, uint32_t begin, size_t max_bytes)
    : text_(text), max_bytes_(max_bytes) {
  sources_.reserve(text.size());
  for (size_t at = 0; at < text.size(); at = sources_.size()) {
    sources_.resize(at + CharacterBytes(text[at]), begin + static_cast<uint32_t>(at));
  }
}

AlignedText AlignedText::Empty() const {
  AlignedText empty;
  empty.max_bytes_ = max_bytes_;
  return empty;
}

void AlignedText::Append(absl::string_view text, uint32_t source) {
  text_.append(text.data(), text.size());
  sources_.resize(text_.size(), source);
}

void AlignedText::AppendPart(const AlignedText& from, size_t begin, size_t end) {
  text_.append(from.text_, begin, end - begin);
  const auto sources = from.sources_.begin();
  sources_.insert(sources_.end(), sources + static_cast<std::ptrdiff_t>(begin),
                  sources + static_cast<std::ptrdiff_t>(end));
}

void AlignedText::Map(absl::FunctionRef<void(char32_t, std::string&)> write) {
  AlignedText mapped = Empty();
  const char* const begin = text_.data();
  for (const char* position = begin; position < begin + text_.size() && !mapped.is_full();) {
    const uint32_t source = sources_[static_cast<size_t>(position - begin)];
    write(NextCharacter(position), mapped.text_);
    mapped.sources_.resize(mapped.text_.size(), source);
  }
  *this = std::move(mapped);
}

void AlignedText::Apply(absl::Span<const CharacterEdit> edits) {
  AlignedText written = Empty();
  size_t place = 0;  // of the next old character
  for (const CharacterEdit& edit : edits) {
    if (written.is_full()) break;
    const size_t from = edit.change > 0 && place > 0 ? place - 1 : place;
    const uint32_t source = sources_[std::min(from, sources_.size() - 1)];
    AppendUtf8(edit.character, written.text_);
    written.sources_.resize(written.text_.size(), source);
    for (int32_t gone = edit.change; gone <= 0 && place < text_.size(); ++gone) {
      place += CharacterBytes(text_[place]);
    }
  }
  *this = std::move(written);
}

}  // namespace attendant
