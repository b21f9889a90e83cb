// SPDX-License-Identifier: Apache-2.0
#include "server/requests/number_format.h"

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

template <float Convert(uint16_t)>
void ReadConverted(const char* bytes, std::span<float> values) {
  for (float& value : values) {
    uint16_t bits;
    std::memcpy(&bits, bytes, sizeof(bits));
    value = Convert(bits);
    bytes += sizeof(bits);
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

float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

float FromF16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | kF32Infinity | mantissa << 13);
  if (exponent > 0)
    return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
  constexpr float kSmallest = 0x1p-24f;
  const float magnitude = static_cast<float>(mantissa) * kSmallest;
  return sign != 0 ? -magnitude : magnitude;
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

void ReadValues(absl::string_view bytes, NumberFormat format, std::span<float> values) {
  switch (format) {
    case NumberFormat::kF32:
      std::memcpy(values.data(), bytes.data(), values.size_bytes());
      return;
    case NumberFormat::kBf16:
      return ReadConverted<FromBf16>(bytes.data(), values);
    case NumberFormat::kF16:
      return ReadConverted<FromF16>(bytes.data(), values);
  }
}

}  // namespace attendant
