// SPDX-License-Identifier: Apache-2.0
#include "server/text/pre_tokenizers/word_reader.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "server/text/unicode/characters.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

enum class Role : uint8_t { kWord, kWhitespace, kPunctuation };

Role FindRole(char32_t character) {
  if (IsWhitespace(character)) return Role::kWhitespace;
  return IsPunctuation(character) ? Role::kPunctuation : Role::kWord;
}

std::array<Role, 128> FindAsciiRoles() {
  std::array<Role, 128> roles{};
  for (size_t i = 0; i < roles.size(); ++i) roles[i] = FindRole(static_cast<char32_t>(i));
  return roles;
}

// Reads the character at `position`, moves past it and tells its role.
inline Role NextRole(const char*& position) {
  static const std::array<Role, 128> ascii_roles = FindAsciiRoles();
  const char32_t character = NextCharacter(position);
  return character < 0x80 ? ascii_roles[character] : FindRole(character);
}

}  // namespace

absl::string_view WordReader::Next() {
  const char* start = position_;
  while (position_ < end_) {
    const char* const here = position_;
    const Role role = NextRole(position_);
    if (role == Role::kWord) continue;
    if (start < here) {
      position_ = here;
      break;
    }
    if (role == Role::kPunctuation) break;
    start = position_;
  }
  return absl::string_view(start, static_cast<size_t>(position_ - start));
}

}  // namespace attendant
