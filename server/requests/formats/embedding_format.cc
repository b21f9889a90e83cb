// SPDX-License-Identifier: Apache-2.0
#include "server/requests/formats/embedding_format.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace attendant {

int64_t EmbeddingBytes(EmbeddingFormat format, int64_t dims) {
  return format == EmbeddingFormat::kInt8 ? dims : (dims + 7) / 8;
}

Int8Embedding QuantizeInt8(std::span<const float> values) {
  constexpr float kLargest = 127;
  Int8Embedding embedding{.values = std::vector<int8_t>(values.size())};
  float largest = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) return embedding;
    largest = std::max(largest, std::fabs(value));
  }
  if (largest == 0) return embedding;
  embedding.scale = largest / kLargest;
  for (size_t i = 0; i < values.size(); ++i) {
    embedding.values[i] = static_cast<int8_t>(std::nearbyint(values[i] / largest * kLargest));
  }
  return embedding;
}

std::vector<uint8_t> PackSigns(std::span<const float> values) {
  std::vector<uint8_t> bytes((values.size() + 7) / 8);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0) bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | (0x80u >> (i % 8)));
  }
  return bytes;
}

}  // namespace attendant
