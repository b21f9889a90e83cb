// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/characters.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/utf16.h>

#include <algorithm>
#include <iterator>

#include "server/text/unicode/character_table.h"

namespace attendant {

bool IsAssigned(char32_t character, int unicode_version) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(character), age);
  return age[0] != 0 && age[0] <= unicode_version;
}

namespace {

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

enum MajorCategoryBit : uint32_t {
  kLetter = 1,
  kNumber = 2,
  kMark = 4,
  kPunctuation = 8,
  kSymbol = 16,
  kSeparator = 32,
};

// Characters of Unicode 15.1 and 16, which an older ICU lacks.
struct CategoryRange {
  char32_t first;
  char32_t last;
  uint32_t category;
};
// Below it, Unicode 17 and 18 assign nothing new.
constexpr char32_t kFirstOfUnicode17 = 0x500;

constexpr CategoryRange kNewCategories[] = {
    {0x897, 0x897, kMark},
    {0x1B4E, 0x1B4F, kPunctuation},
    {0x1B7F, 0x1B7F, kPunctuation},
    {0x1C89, 0x1C8A, kLetter},
    {0x2427, 0x2429, kSymbol},
    {0x2FFC, 0x2FFF, kSymbol},
    {0x31E4, 0x31E5, kSymbol},
    {0x31EF, 0x31EF, kSymbol},
    {0xA7CB, 0xA7CD, kLetter},
    {0xA7DA, 0xA7DC, kLetter},
    {0x105C0, 0x105F3, kLetter},
    {0x10D40, 0x10D49, kNumber},
    {0x10D4A, 0x10D65, kLetter},
    {0x10D69, 0x10D6D, kMark},
    {0x10D6E, 0x10D6E, kPunctuation},
    {0x10D6F, 0x10D85, kLetter},
    {0x10D8E, 0x10D8F, kSymbol},
    {0x10EC2, 0x10EC4, kLetter},
    {0x10EFC, 0x10EFC, kMark},
    {0x11380, 0x11389, kLetter},
    {0x1138B, 0x1138B, kLetter},
    {0x1138E, 0x1138E, kLetter},
    {0x11390, 0x113B5, kLetter},
    {0x113B7, 0x113B7, kLetter},
    {0x113B8, 0x113C0, kMark},
    {0x113C2, 0x113C2, kMark},
    {0x113C5, 0x113C5, kMark},
    {0x113C7, 0x113CA, kMark},
    {0x113CC, 0x113D0, kMark},
    {0x113D1, 0x113D1, kLetter},
    {0x113D2, 0x113D2, kMark},
    {0x113D3, 0x113D3, kLetter},
    {0x113D4, 0x113D5, kPunctuation},
    {0x113D7, 0x113D8, kPunctuation},
    {0x113E1, 0x113E2, kMark},
    {0x116D0, 0x116E3, kNumber},
    {0x11BC0, 0x11BE0, kLetter},
    {0x11BE1, 0x11BE1, kPunctuation},
    {0x11BF0, 0x11BF9, kNumber},
    {0x11F5A, 0x11F5A, kMark},
    {0x13460, 0x143FA, kLetter},
    {0x16100, 0x1611D, kLetter},
    {0x1611E, 0x1612F, kMark},
    {0x16130, 0x16139, kNumber},
    {0x16D40, 0x16D6C, kLetter},
    {0x16D6D, 0x16D6F, kPunctuation},
    {0x16D70, 0x16D79, kNumber},
    {0x18CFF, 0x18CFF, kLetter},
    {0x1CC00, 0x1CCEF, kSymbol},
    {0x1CCF0, 0x1CCF9, kNumber},
    {0x1CD00, 0x1CEB3, kSymbol},
    {0x1E5D0, 0x1E5ED, kLetter},
    {0x1E5EE, 0x1E5EF, kMark},
    {0x1E5F0, 0x1E5F0, kLetter},
    {0x1E5F1, 0x1E5FA, kNumber},
    {0x1E5FF, 0x1E5FF, kPunctuation},
    {0x1F8B2, 0x1F8BB, kSymbol},
    {0x1F8C0, 0x1F8C1, kSymbol},
    {0x1FA89, 0x1FA89, kSymbol},
    {0x1FA8F, 0x1FA8F, kSymbol},
    {0x1FABE, 0x1FABE, kSymbol},
    {0x1FAC6, 0x1FAC6, kSymbol},
    {0x1FADC, 0x1FADC, kSymbol},
    {0x1FADF, 0x1FADF, kSymbol},
    {0x1FAE9, 0x1FAE9, kSymbol},
    {0x1FBCB, 0x1FBEF, kSymbol},
    {0x2EBF0, 0x2EE5D, kLetter},
};

uint32_t NewMajorCategory(char32_t character) {
  const auto* const range = std::lower_bound(
      std::begin(kNewCategories), std::end(kNewCategories), character,
      [](const CategoryRange& candidate, char32_t wanted) { return candidate.last < wanted; });
  return range != std::end(kNewCategories) && character >= range->first ? range->category : 0;
}

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

bool IsMark(char32_t character) {
  if (character < 0x300) return false;
  if (character == 0x1CF2 || character == 0x1CF3) return true;  // letters since Unicode 12
  if (character == 0x111C9) return false;                       // a mark since Unicode 11
  return IsAssigned(character, 9) &&
         (U_GET_GC_MASK(static_cast<UChar32>(character)) & U_GC_M_MASK) != 0;
}

bool IsChinese(char32_t character) {
  const auto in = [=](char32_t first, char32_t last) {
    return character >= first && character <= last;
  };
  return in(0x3400, 0x4DBF) || in(0x4E00, 0x9FFF) || in(0xF900, 0xFAFF) || in(0x20000, 0x2A6DF) ||
         in(0x2A700, 0x2B81F) || in(0x2B920, 0x2CEAF) || in(0x2F800, 0x2FA1F);
}

uint32_t MajorCategory(char32_t character) {
  const uint32_t mask = U_GET_GC_MASK(static_cast<UChar32>(character));
  if (mask == U_GC_CN_MASK) return NewMajorCategory(character);
  if (character >= kFirstOfUnicode17 && !IsAssigned(character, 16)) return 0;
  if ((mask & U_GC_L_MASK) != 0) return kLetter;
  if ((mask & U_GC_N_MASK) != 0) return kNumber;
  if ((mask & U_GC_M_MASK) != 0) return kMark;
  if ((mask & U_GC_P_MASK) != 0) return kPunctuation;
  if ((mask & U_GC_S_MASK) != 0) return kSymbol;
  if ((mask & U_GC_Z_MASK) != 0) return kSeparator;
  return 0;
}

uint8_t CharacterClass(char32_t character) {
  static const CharacterTable& table = *new CharacterTable([](char32_t c) {
    return static_cast<uint8_t>(MajorCategory(c) | (IsWhitespace(c) ? kWhitespaceClass : 0));
  });
  return table(character);
}

bool IsNumeric(char32_t character) {
  // New in Unicode 17.
  return (character >= 0x11DE0 && character <= 0x11DE9) ||
         (character >= 0x16FF4 && character <= 0x16FF6) ||
         (MajorCategory(character) & kNumber) != 0;
}

bool IsWordCharacter(char32_t character) {
  const auto code_point = static_cast<UChar32>(character);
  constexpr uint32_t kWordCategories = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  const uint32_t mask = U_GET_GC_MASK(code_point);
  // The numbers among the new categories are digits.
  if (mask == U_GC_CN_MASK) {
    return (NewMajorCategory(character) & (kLetter | kMark | kNumber)) != 0;
  }
  return (mask & kWordCategories) != 0 || u_hasBinaryProperty(code_point, UCHAR_ALPHABETIC) ||
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
