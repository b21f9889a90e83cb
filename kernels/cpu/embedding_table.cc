// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/embedding_table.h"

#include <bit>
#include <cstring>

namespace attendant::cpu {
namespace {

// To the nearest, ties to even. REQUIRES: finite; a checkpoint's values are.
uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

EmbeddingTable::EmbeddingTable(int64_t rows, int64_t hidden, DType dtype, Arena& arena)
    : rows_(rows), hidden_(hidden) {
  if (dtype == DType::kF32) {
    f32_ = arena.Allocate<float>(rows * hidden);
  } else {
    bf16_ = arena.Allocate<uint16_t>(rows * hidden);
  }
}

void EmbeddingTable::FillRows(TensorView<const float, 2> table, int64_t begin, int64_t end) {
  const float* values = table.data();
  if (f32_ != nullptr) {
    std::memcpy(f32_ + begin * hidden_, values + begin * hidden_,
                static_cast<size_t>((end - begin) * hidden_) * sizeof(float));
    return;
  }
  for (int64_t i = begin * hidden_; i < end * hidden_; ++i) bf16_[i] = ToBf16(values[i]);
}

const float* EmbeddingTable::Row(int64_t index, float* scratch) const {
  if (f32_ != nullptr) return f32_ + index * hidden_;
  const uint16_t* row = bf16_ + index * hidden_;
  for (int64_t i = 0; i < hidden_; ++i) {
    scratch[i] = std::bit_cast<float>(static_cast<uint32_t>(row[i]) << 16);
  }
  return scratch;
}

}  // namespace attendant::cpu
