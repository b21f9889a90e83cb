// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/float_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/half.h"
#include "kernels/core/base/quote.h"

namespace attendant {
namespace {

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

template <typename Stored, float Convert(Stored)>
void ConvertAll(std::span<const std::byte> data, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, data.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = Convert(stored);
  }
}

}  // namespace

absl::Status ConvertToFloat(absl::string_view dtype, std::span<const std::byte> data,
                            std::span<float> values) {
  if (dtype == "F32") {
    ConvertAll<float, FromF32>(data, values);
  } else if (dtype == "BF16") {
    ConvertAll<uint16_t, FromBf16>(data, values);
  } else if (dtype == "F16") {
    ConvertAll<uint16_t, FromF16>(data, values);
  } else if (dtype == "F64") {
    ConvertAll<double, FromF64>(data, values);
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
