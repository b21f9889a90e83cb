// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/characters.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/utf16.h>

namespace attendant {
namespace {

bool IsAssigned(char32_t character, int unicode_version) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(character), age);
  return age[0] != 0 && age[0] <= unicode_version;
}

// U_GC_*_MASK in Unicode 8: a few characters have changed their category since.
uint32_t CategoryMask(char32_t character) {
  switch (character) {
    case 0x166D:
    case 0x111C9:
      return U_GC_PO_MASK;
    case 0x1734:
    case 0x1171E:
      return U_GC_MN_MASK;
    case 0x1885:
    case 0x1886:
      return U_GC_LO_MASK;
    case 0xA9BD:
      return U_GC_MC_MASK;
    default:
      return IsAssigned(character, 8) ? U_GET_GC_MASK(static_cast<UChar32>(character))
                                      : U_GC_CN_MASK;
  }
}

bool IsAsciiSymbol(char32_t character) {
  return (character >= '!' && character <= '/') || (character >= ':' && character <= '@') ||
         (character >= '[' && character <= '`') || (character >= '{' && character <= '~');
}

// Lowercase mappings of Unicode 16 and 17, which an older ICU lacks: `first`..`last` plus `offset`.
struct LowercaseRange {
  char32_t first;
  char32_t last;
  int32_t offset;
};
constexpr LowercaseRange kNewLowercase[] = {
    {0x1C89, 0x1C89, 1},      {0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
    {0xA7CC, 0xA7CC, 1},      {0xA7CE, 0xA7CE, 1},
    {0xA7D2, 0xA7D2, 1},      {0xA7D4, 0xA7D4, 1},
    {0xA7DA, 0xA7DA, 1},      {0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
    {0x10D50, 0x10D65, 0x20}, {0x16EA0, 0x16EB8, 0x1B},
};

}  // namespace

bool IsWhitespace(char32_t character) { return u_isUWhiteSpace(static_cast<UChar32>(character)); }

bool IsPunctuation(char32_t character) {
  if (character < 0x80) return IsAsciiSymbol(character);
  return (CategoryMask(character) & U_GC_P_MASK) != 0;
}

bool IsControl(char32_t character) {
  return (CategoryMask(character) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
}

bool IsNonspacingMark(char32_t character) { return CategoryMask(character) == U_GC_MN_MASK; }

bool IsChinese(char32_t character) {
  const auto in = [=](char32_t first, char32_t last) {
    return character >= first && character <= last;
  };
  return in(0x3400, 0x4DBF) || in(0x4E00, 0x9FFF) || in(0xF900, 0xFAFF) || in(0x20000, 0x2A6DF) ||
         in(0x2A700, 0x2B81F) || in(0x2B920, 0x2CEAF) || in(0x2F800, 0x2FA1F);
}

bool IsWordCharacter(char32_t character) {
  const auto code_point = static_cast<UChar32>(character);
  constexpr uint32_t kWordCategories = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return (U_GET_GC_MASK(code_point) & kWordCategories) != 0 ||
         u_hasBinaryProperty(code_point, UCHAR_ALPHABETIC) ||
         u_hasBinaryProperty(code_point, UCHAR_JOIN_CONTROL);
}

uint8_t CombiningClass(char32_t character) {
  const uint8_t combining_class = u_getCombiningClass(static_cast<UChar32>(character));
  return combining_class != 0 && IsAssigned(character, 9) ? combining_class : uint8_t{0};
}

Decomposition Decompose(char32_t character) {
  // This table is compiled into ICU: getting it cannot fail.
  UErrorCode error = U_ZERO_ERROR;
  static const UNormalizer2* const nfd = unorm2_getNFDInstance(&error);
  constexpr int32_t kMaxUnits = 2 * Decomposition::kMaxCharacters;
  UChar units[kMaxUnits];
  const int32_t length =
      unorm2_getDecomposition(nfd, static_cast<UChar32>(character), units, kMaxUnits, &error);
  if (length < 0 || U_FAILURE(error) || !IsAssigned(character, 9)) return {{character}, 1};

  Decomposition result{{}, 0};
  for (int32_t i = 0; i < length;) {
    UChar32 part;
    U16_NEXT(units, i, length, part);
    result.characters[result.count++] = static_cast<char32_t>(part);
  }
  return result;
}

char32_t Lowercase(char32_t character) {
  for (const LowercaseRange& range : kNewLowercase) {
    if (character >= range.first && character <= range.last) {
      return static_cast<char32_t>(static_cast<int32_t>(character) + range.offset);
    }
  }
  const auto lowercase = static_cast<char32_t>(u_tolower(static_cast<UChar32>(character)));
  return lowercase == character || IsAssigned(character, 17) ? lowercase : character;
}

}  // namespace attendant
