// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/float_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/io/quoted.h"

namespace attendant {
namespace {

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Shifted into place, f16's exponent is 112 too small: one exact product corrects normal numbers
// and subnormal ones alike. Infinity and NaN have the largest exponent in both formats.
float FromF16(uint16_t bits) {
  constexpr uint32_t kInfinity = 0x7f800000;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(bits & 0x7fff) << 13;
  if (rest >= (0x7c00u << 13)) return std::bit_cast<float>(sign | kInfinity | rest);
  const float magnitude = std::bit_cast<float>(rest) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

float FromF64(double value) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (std::abs(value) > std::numeric_limits<float>::max())
    return value > 0 ? kInfinity : -kInfinity;
  return static_cast<float>(value);
}

float FromF32(float value) { return value; }

uint32_t IsNonFinite(float value) {
  constexpr uint32_t kExponent = 0x7f800000;
  return (std::bit_cast<uint32_t>(value) & kExponent) == kExponent ? 1 : 0;
}

template <typename Stored>
void Convert(std::span<const std::byte> data, std::span<float> values, float (*convert)(Stored)) {
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, data.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
}

}  // namespace

absl::Status ConvertToFloat(absl::string_view dtype, std::span<const std::byte> data,
                            std::span<float> values) {
  if (dtype == "F32") {
    Convert<float>(data, values, FromF32);
  } else if (dtype == "BF16") {
    Convert<uint16_t>(data, values, FromBf16);
  } else if (dtype == "F16") {
    Convert<uint16_t>(data, values, FromF16);
  } else if (dtype == "F64") {
    Convert<double>(data, values, FromF64);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype is ", Quoted(dtype), ", expected F32, F16, BF16 or F64"));
  }
  return absl::OkStatus();
}

// A block at a time: compilers vectorize a loop that has no way out in its middle.
int64_t FirstNonFinite(std::span<const float> values) {
  constexpr size_t kBlock = 4096;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::span<const float> block =
        values.subspan(begin, std::min(kBlock, values.size() - begin));
    uint32_t found = 0;
    for (float value : block) found |= IsNonFinite(value);
    if (found == 0) continue;
    const auto first = std::find_if(block.begin(), block.end(), IsNonFinite);
    return static_cast<int64_t>(begin) + (first - block.begin());
  }
  return -1;
}

}  // namespace attendant
