// SPDX-License-Identifier: Apache-2.0
#include "server/text/normalizers/charsmap.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr size_t kUnitBytes = 4;

uint32_t ReadUnit(absl::string_view bytes, size_t at) {
  uint32_t unit = 0;
  for (size_t i = 0; i < kUnitBytes; ++i) {
    unit |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return unit;
}

// A leaf's label is no byte.
uint32_t Label(uint32_t unit) { return unit & (uint32_t{1} << 31 | 0xFF); }
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t LeafValue(uint32_t unit) { return unit & 0x7FFFFFFF; }
size_t Offset(uint32_t unit) { return size_t{unit >> 10} << ((unit & (1u << 9)) >> 6); }

}  // namespace

absl::StatusOr<Charsmap> Charsmap::Parse(absl::string_view bytes) {
  if (bytes.size() < kUnitBytes) return absl::InvalidArgumentError("has no size");
  const size_t unit_bytes = ReadUnit(bytes, 0);
  bytes.remove_prefix(kUnitBytes);
  if (unit_bytes == 0 || unit_bytes % kUnitBytes != 0 || unit_bytes > bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a trie of ", unit_bytes, " bytes among ", bytes.size()));
  }
  Charsmap map;
  for (size_t at = 0; at < unit_bytes; at += kUnitBytes) map.units_.push_back(ReadUnit(bytes, at));
  map.replacements_ = std::string(bytes.substr(unit_bytes));
  if (const auto offset = FindInvalidUtf8(map.replacements_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has invalid UTF-8 at byte ", *offset, " of its replacements"));
  }
  ATTENDANT_RETURN_IF_ERROR(map.CheckUnits());
  return map;
}

// In the order of the keys' lengths, so that each leaf is first reached by its shortest key.
absl::Status Charsmap::CheckUnits() {
  struct Children {
    size_t base;       // where they are
    size_t key_bytes;  // of their keys
  };
  std::vector<bool> seen(units_.size());
  std::vector<Children> found = {{Offset(units_[0]), 1}};
  seen[0] = true;
  for (size_t next = 0; next < found.size(); ++next) {
    const auto [base, key_bytes] = found[next];
    for (size_t label = 1; label < 256; ++label) {
      const size_t child = base ^ label;
      if (child >= units_.size() || Label(units_[child]) != label) continue;
      if (seen[child]) continue;  // darts-clone shares equal branches
      seen[child] = true;
      const size_t child_base = child ^ Offset(units_[child]);
      if (HasLeaf(units_[child])) {
        if (child_base >= units_.size()) {
          return absl::InvalidArgumentError(
              absl::StrCat("has a leaf at ", child_base, " of ", units_.size(), " units"));
        }
        ATTENDANT_RETURN_IF_ERROR(CheckReplacement(LeafValue(units_[child_base]), key_bytes));
      }
      found.push_back({child_base, key_bytes + 1});
    }
  }
  return absl::OkStatus();
}

absl::Status Charsmap::CheckReplacement(uint32_t offset, size_t key_bytes) {
  const bool inside = offset < replacements_.size();
  const bool at_character =
      inside && (static_cast<unsigned char>(replacements_[offset]) & 0xC0) != 0x80;
  if (!at_character) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a replacement at byte ", offset, " of ", replacements_.size()));
  }
  const size_t end = std::min(replacements_.find('\0', offset), replacements_.size());
  times_ = std::max(times_, static_cast<double>(end - offset) / static_cast<double>(key_bytes));
  if (end - offset <= kMaxReplacementBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("has a replacement of ", end - offset,
                                                 " bytes, the limit is ", kMaxReplacementBytes));
}

std::optional<absl::string_view> Charsmap::Find(absl::string_view text) const {
  size_t base = Offset(units_[0]);
  for (const char byte : text) {
    const size_t label = static_cast<unsigned char>(byte);
    const size_t child = base ^ label;
    if (label == 0 || child >= units_.size() || Label(units_[child]) != label) break;
    base = child ^ Offset(units_[child]);
    if (!HasLeaf(units_[child])) continue;
    const absl::string_view rest = absl::string_view(replacements_).substr(LeafValue(units_[base]));
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

}  // namespace attendant
