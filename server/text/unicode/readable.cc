// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/readable.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

constexpr size_t kMaxCharacterBytes = 4;

// REQUIRES: `end` is before the text's.
absl::string_view CutBefore(absl::string_view text, size_t end) {
  const size_t near = end - std::min(end, kMaxCharacterBytes - 1);
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data()) + near;
  auto kept = static_cast<int32_t>(end - near);
  U8_SET_CP_START(bytes, 0, kept);
  return text.substr(0, near + static_cast<size_t>(kept));
}

}  // namespace

std::string Readable(absl::string_view text, size_t max_bytes) {
  const bool cut = text.size() > max_bytes;
  const absl::string_view kept = cut ? CutBefore(text, max_bytes) : text;
  const auto* bytes = reinterpret_cast<const uint8_t*>(kept.data());
  std::string out;
  size_t done = 0;
  for (size_t offset = 0; offset < kept.size();) {
    const size_t start = offset;
    UChar32 character;  // negative: no UTF-8
    U8_NEXT(bytes, offset, kept.size(), character);
    if (character >= 0xA0 || (character >= 0x20 && character < 0x7F)) continue;
    out.append(kept.data() + done, start - done);
    out += absl::CHexEscape(kept.substr(start, offset - start));
    done = offset;
  }
  out.append(kept.data() + done, kept.size() - done);
  return cut ? out + "..." : out;
}

std::string ReadableName(absl::string_view name) {
  return absl::StrCat("'", Readable(name, 100), "'");
}

}  // namespace attendant
