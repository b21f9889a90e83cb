// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/grapheme.h"

#include <unicode/uchar.h>

#include <cstdint>

#include "server/text/unicode/character_table.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

// No character below it joins another, but for CR LF.
constexpr char32_t kFirstJoiner = 0x300;

// Marks of Unicode 15.1 to 17, which an older ICU lacks.
constexpr char32_t kNewMarks[][2] = {
    {0x897, 0x897},     {0x1ACF, 0x1ADD},   {0x1AE0, 0x1AEB},   {0x10D69, 0x10D6D},
    {0x10EFA, 0x10EFC}, {0x113B8, 0x113C0}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5},
    {0x113C7, 0x113CA}, {0x113CC, 0x113D0}, {0x113D2, 0x113D2}, {0x113E1, 0x113E2},
    {0x11B60, 0x11B67}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F}, {0x1E5EE, 0x1E5EF},
    {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6}, {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5},
};

bool IsNewMark(char32_t character) {
  for (const auto& [first, last] : kNewMarks) {
    if (character >= first && character <= last) return true;
  }
  return false;
}

// A grapheme cluster break class, and a bit of pictographs.
constexpr uint8_t kPictographic = 0x80;

uint8_t FindTraits(char32_t character) {
  const auto code_point = static_cast<UChar32>(character);
  const int type = IsNewMark(character)
                       ? U_GCB_EXTEND
                       : u_getIntPropertyValue(code_point, UCHAR_GRAPHEME_CLUSTER_BREAK);
  const bool pictographic = u_hasBinaryProperty(code_point, UCHAR_EXTENDED_PICTOGRAPHIC);
  return static_cast<uint8_t>(type | (pictographic ? kPictographic : 0));
}

uint8_t Traits(char32_t character) {
  static const CharacterTable& table = *new CharacterTable(FindTraits);
  return table(character);
}

int BreakClass(uint8_t traits) { return traits & ~kPictographic; }
bool IsPictographic(uint8_t traits) { return (traits & kPictographic) != 0; }

bool IsControlClass(int type) {
  return type == U_GCB_CONTROL || type == U_GCB_CR || type == U_GCB_LF;
}

// GB6 to GB8.
bool JoinsSyllable(int left, int right) {
  const bool right_vowel = right == U_GCB_V;
  if (left == U_GCB_L) {
    return right == U_GCB_L || right_vowel || right == U_GCB_LV || right == U_GCB_LVT;
  }
  if (left == U_GCB_LV || left == U_GCB_V) return right_vowel || right == U_GCB_T;
  return (left == U_GCB_LVT || left == U_GCB_T) && right == U_GCB_T;
}

}  // namespace

const char* FindGraphemeEnd(const char* position, const char* end) {
  char32_t last = NextCharacter(position);
  bool odd_indicators = false;  // an odd number of regional indicators so far
  bool in_emoji = false;        // a pictograph, then only Extend
  bool after_zwj = false;       // ... then a joiner
  bool first = true;
  int left = 0;
  for (; position < end; first = false) {
    const char* next = position;
    const char32_t character = NextCharacter(next);
    if (first) {
      if (character < kFirstJoiner && last < kFirstJoiner) {
        return last == '\r' && character == '\n' ? next : position;
      }
      const uint8_t traits = Traits(last);
      left = BreakClass(traits);
      odd_indicators = left == U_GCB_REGIONAL_INDICATOR;
      in_emoji = IsPictographic(traits);
    }
    const uint8_t traits = Traits(character);
    const int right = BreakClass(traits);
    if (left == U_GCB_OTHER && right == U_GCB_OTHER && !after_zwj) return position;
    if (IsControlClass(left) || IsControlClass(right)) {
      return left == U_GCB_CR && right == U_GCB_LF ? next : position;
    }
    const bool extends = right == U_GCB_EXTEND || right == U_GCB_ZWJ || right == U_GCB_SPACING_MARK;
    const bool joins = extends || left == U_GCB_PREPEND || JoinsSyllable(left, right) ||
                       (after_zwj && IsPictographic(traits)) ||
                       (odd_indicators && right == U_GCB_REGIONAL_INDICATOR);
    if (!joins) return position;
    after_zwj = in_emoji && right == U_GCB_ZWJ;
    in_emoji = IsPictographic(traits) || (in_emoji && right == U_GCB_EXTEND);
    odd_indicators = right == U_GCB_REGIONAL_INDICATOR && !odd_indicators;
    left = right;
    last = character;
    position = next;
  }
  return position;
}

}  // namespace attendant
