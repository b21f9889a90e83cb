// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/character_index.h"

#include <algorithm>

namespace attendant {
namespace {

constexpr size_t kBlockBytes = 64;

size_t IsBegin(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80 ? 1 : 0; }

}  // namespace

CharacterIndex::CharacterIndex(absl::string_view text) : text_(text) {
  before_.reserve(text.size() / kBlockBytes + 1);
  uint32_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i % kBlockBytes == 0) before_.push_back(count);
    count += static_cast<uint32_t>(IsBegin(text[i]));
  }
  if (text.size() % kBlockBytes == 0) before_.push_back(count);
}

size_t CharacterIndex::CountBefore(size_t at) const {
  const size_t block = at / kBlockBytes;
  size_t count = before_[block];
  for (size_t i = block * kBlockBytes; i < at; ++i) count += IsBegin(text_[i]);
  return count;
}

size_t CharacterIndex::ByteOf(size_t character) const {
  const auto behind = std::upper_bound(before_.begin(), before_.end(), character);
  const auto block = static_cast<size_t>(behind - before_.begin()) - 1;
  size_t count = before_[block];
  for (size_t i = block * kBlockBytes; i < text_.size(); ++i) {
    if (count == character && IsBegin(text_[i]) == 1) return i;
    count += IsBegin(text_[i]);
  }
  return text_.size();
}

}  // namespace attendant
