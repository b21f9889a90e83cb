// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/normal_form.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>

#include <cstddef>
#include <cstdint>

#include "server/text/unicode/form_edits.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

// All these tables are compiled into ICU: getting them cannot fail.
const icu::UnicodeSet& Unicode9() {
  static const icu::UnicodeSet& set = *[] {
    UErrorCode error = U_ZERO_ERROR;
    auto* const characters = new icu::UnicodeSet(u"[:age=9.0:]", error);
    characters->freeze();
    return characters;
  }();
  return set;
}

const icu::Normalizer2& FindForm(NormalForm form) {
  UErrorCode error = U_ZERO_ERROR;
  static const icu::FilteredNormalizer2 forms[] = {
      {*icu::Normalizer2::getNFCInstance(error), Unicode9()},
      {*icu::Normalizer2::getNFDInstance(error), Unicode9()},
      {*icu::Normalizer2::getNFKCInstance(error), Unicode9()},
      {*icu::Normalizer2::getNFKDInstance(error), Unicode9()},
  };
  return forms[static_cast<int>(form)];
}

// Takes no more once there are more than `max_bytes`.
class BoundedSink final : public icu::ByteSink {
 public:
  BoundedSink(size_t max_bytes, std::string& out) : max_bytes_(max_bytes), out_(out) {}

  void Append(const char* bytes, int32_t size) override {
    if (out_.size() <= max_bytes_) out_.append(bytes, static_cast<size_t>(size));
  }

 private:
  size_t max_bytes_;
  std::string& out_;
};

// A character that may have to be sorted: its normal form begins with a mark.
bool BeginsWithMark(char32_t character) {
  return u_getIntPropertyValue(static_cast<UChar32>(character),
                               UCHAR_LEAD_CANONICAL_COMBINING_CLASS) != 0;
}

// Whether 64 marks follow each other somewhere, perhaps also for 32. Looks at few characters: every
// such run goes past a multiple of kStride, and 32 marks are left of it there.
bool HasManyMarks(absl::string_view text) {
  constexpr size_t kStride = 64;
  constexpr int kManyMarks = 32;
  const char* const end = text.data() + text.size();
  for (size_t at = 0; at < text.size(); at += kStride) {
    const char* position = text.data() + at;
    while (position < end && (static_cast<unsigned char>(*position) & 0xC0) == 0x80) ++position;
    int marks = 0;
    while (position < end && BeginsWithMark(NextCharacter(position))) {
      if (++marks == kManyMarks) return true;
    }
  }
  return false;
}

}  // namespace

// ICU sorts the marks between two starters by insertion, which is quadratic: 200 kB of U+0345
// U+0301 U+0323 U+0334 over and over took 3.3 s. NormalFormEdits sorts them faster, but takes 10 to
// 100 times as long as ICU for ordinary texts.
void AppendNormalForm(NormalForm form, absl::string_view text, size_t max_bytes, std::string& out) {
  if (HasManyMarks(text)) {
    for (const CharacterEdit& edit : NormalFormEdits(form, text, max_bytes)) {
      AppendUtf8(edit.character, out);
    }
    return;
  }
  UErrorCode error = U_ZERO_ERROR;
  out.reserve(out.size() + text.size());
  BoundedSink sink(max_bytes, out);
  FindForm(form).normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())),
                               sink, nullptr, error);
}

}  // namespace attendant
