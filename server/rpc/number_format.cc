// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/number_format.h"

#include <bit>
#include <cstring>

namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kSignMask = 0x80000000;
constexpr uint32_t kF32Infinity = 0x7f800000;

template <uint16_t Convert(float)>
void AppendConverted(std::span<const float> values, std::string& bytes) {
  const size_t start = bytes.size();
  bytes.resize(start + values.size() * sizeof(uint16_t));
  char* out = bytes.data() + start;
  for (float value : values) {
    const uint16_t converted = Convert(value);
    std::memcpy(out, &converted, sizeof(converted));
    out += sizeof(converted);
  }
}

}  // namespace

int64_t BytesPerValue(NumberFormat format) { return format == NumberFormat::kF32 ? 4 : 2; }

uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & ~kSignMask) > kF32Infinity) return static_cast<uint16_t>((bits >> 16) | 0x40);
  const uint32_t ties_to_even = 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>((bits + ties_to_even) >> 16);
}

uint16_t ToF16(float value) {
  constexpr uint32_t kOverflow = 0x477ff000;   // 65520, halfway between the largest f16 and 2^16
  constexpr uint32_t kMinNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits & kSignMask) >> 16;
  uint32_t magnitude = bits & ~kSignMask;
  if (magnitude > kF32Infinity) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= kOverflow) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < kMinNormal) {
    // One unit in the last place of 0.5f is f16's smallest subnormal: the addition rounds for us.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) & 0x7fff));
  }
  magnitude += 0xfff + ((magnitude >> 13) & 1) - kRebias;
  return static_cast<uint16_t>(sign | (magnitude >> 13));
}

void AppendValues(std::span<const float> values, NumberFormat format, std::string& bytes) {
  switch (format) {
    case NumberFormat::kF32:
      bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
      return;
    case NumberFormat::kBf16:
      return AppendConverted<ToBf16>(values, bytes);
    case NumberFormat::kF16:
      return AppendConverted<ToF16>(values, bytes);
  }
}

}  // namespace attendant
