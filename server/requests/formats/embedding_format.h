// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// The wire format of an embedding: numbers, or quantized.
enum class EmbeddingFormat {
  kNumbers,
  kInt8,     // QuantizeInt8
  kBinary,   // PackSigns less 128, so that a byte is an int8
  kUbinary,  // PackSigns
};

// Bytes of an embedding of `dims` values. REQUIRES: not kNumbers.
int64_t EmbeddingBytes(EmbeddingFormat format, int64_t dims);

// An embedding as int8: value i is about scale * values[i].
struct Int8Embedding {
  std::vector<int8_t> values;  // [dims], from -127 to 127
  float scale = 0;             // the largest magnitude / 127
};
// Rounds to nearest even. Values that are all 0, and those of a vector that is not finite, give
// zeros and the scale 0.
Int8Embedding QuantizeInt8(std::span<const float> values);

// Eight signs to a byte, the first in its highest bit; 1 is above 0. What is missing of the last
// byte is 0. As numpy.packbits(values > 0), and sentence-transformers' "ubinary".
std::vector<uint8_t> PackSigns(std::span<const float> values);

}  // namespace attendant
