// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace attendant {

// Properties of characters as the `tokenizers` library has them. Each of its tables has a Unicode
// version of its own, which these functions reproduce whatever version the installed ICU has:
//
//   general categories            Unicode 8
//   decomposition, its order      Unicode 9
//   marks                         Unicode 9
//   lowercase                     Unicode 17
//   major categories              Unicode 16
//
// A character that is newer than a table counts as unassigned there.

bool IsWhitespace(char32_t character);

// True if the version of Unicode has the character, by the tables of the installed ICU.
bool IsAssigned(char32_t character, int unicode_version);

// ASCII symbols and Unicode punctuation: each is a word of its own.
bool IsPunctuation(char32_t character);

// Control, format and private-use characters, tab and line ends included.
bool IsControl(char32_t character);

bool IsNonspacingMark(char32_t character);

// Marks of all kinds.
bool IsMark(char32_t character);

// Characters of the CJK ideograph blocks that BERT knows; not kana, not Hangul.
bool IsChinese(char32_t character);

// The major categories of regular expressions, \p{L} to \p{Z}, as bits in the order "LNMPSZ". A
// character of none of them (control, unassigned) has 0.
uint32_t MajorCategory(char32_t character);
inline constexpr uint32_t kMajorCategories = 6;

// The bits of MajorCategory, and kWhitespaceClass.
uint8_t CharacterClass(char32_t character);
inline constexpr uint8_t kWhitespaceClass = 1 << kMajorCategories;
inline constexpr size_t kCharacterClasses = size_t{2} << kMajorCategories;

// Numbers of any kind, by Unicode 17.
bool IsNumeric(char32_t character);

// True if \w of a Unicode regular expression matches the character, by the tables of the installed
// ICU.
bool IsWordCharacter(char32_t character);

// 0 for a starter; marks with other classes are sorted by it, stably.
uint8_t CombiningClass(char32_t character);

// A character's full canonical decomposition, itself when it has none.
struct Decomposition {
  static constexpr int kMaxCharacters = 4;
  char32_t characters[kMaxCharacters];
  int count;
};
Decomposition Decompose(char32_t character);

// The lowercase of one character, without context. REQUIRES: not U+0130, the only one whose
// lowercase is two characters.
char32_t Lowercase(char32_t character);

}  // namespace attendant
