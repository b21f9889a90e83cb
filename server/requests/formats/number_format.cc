// SPDX-License-Identifier: Apache-2.0
#include "server/requests/formats/number_format.h"

#include <bit>
#include <cstring>

#include "kernels/core/base/half.h"

namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little);

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
