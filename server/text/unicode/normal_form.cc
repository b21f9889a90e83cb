// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/normal_form.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uniset.h>

#include <cstdint>

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

}  // namespace

void AppendNormalForm(NormalForm form, absl::string_view text, std::string& out) {
  UErrorCode error = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(text.size()));
  FindForm(form).normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())),
                               sink, nullptr, error);
}

}  // namespace attendant
