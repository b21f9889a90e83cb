// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/embedding_table.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/base/half.h"
#include "kernels/cpu/matmul/packed_linear.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

EmbeddingTable::EmbeddingTable(int64_t rows, int64_t hidden, DType dtype, Arena& arena)
    : rows_(rows), hidden_(hidden) {
  switch (dtype) {
    case DType::kF32:
      f32_ = arena.Allocate<float>(rows * hidden);
      return;
    case DType::kInt8:
      int8_ = arena.Allocate<int8_t>(rows * hidden);
      scales_ = arena.Allocate<float>(rows);
      return;
    default:
      bf16_ = arena.Allocate<uint16_t>(rows * hidden);
  }
}

int64_t EmbeddingTable::bytes() const {
  const int64_t values = rows_ * hidden_;
  if (f32_ != nullptr) return 4 * values;
  if (bf16_ != nullptr) return 2 * values;
  return values + 4 * rows_;
}

void EmbeddingTable::FillRows(TensorView<const float, 2> table, int64_t begin, int64_t end,
                              float scale) {
  const float* values = table.data();
  if (f32_ != nullptr) {
    for (int64_t i = begin * hidden_; i < end * hidden_; ++i) f32_[i] = values[i] * scale;
  } else if (bf16_ != nullptr) {
    for (int64_t i = begin * hidden_; i < end * hidden_; ++i) bf16_[i] = ToBf16(values[i] * scale);
  } else {
    for (int64_t row = begin; row < end; ++row) FillInt8Row(values + row * hidden_, row, scale);
  }
}

void EmbeddingTable::FillInt8Row(const float* values, int64_t row, float scale) {
  float largest = 0;
  for (int64_t i = 0; i < hidden_; ++i) largest = std::max(largest, std::abs(values[i]));
  scales_[row] = largest / 127 * scale;
  const float inverse = largest > kLeastInt8Range ? 127 / largest : 0;
  for (int64_t i = 0; i < hidden_; ++i) {
    int8_[row * hidden_ + i] = static_cast<int8_t>(std::nearbyint(values[i] * inverse));
  }
}

const float* EmbeddingTable::Row(int64_t index, float* scratch) const {
  if (f32_ != nullptr) return f32_ + index * hidden_;
  if (bf16_ != nullptr) {
    const uint16_t* row = bf16_ + index * hidden_;
    for (int64_t i = 0; i < hidden_; ++i) {
      scratch[i] = FromBf16(row[i]);
    }
    return scratch;
  }
  const int8_t* row = int8_ + index * hidden_;
  const float scale = scales_[index];
  for (int64_t i = 0; i < hidden_; ++i) scratch[i] = scale * static_cast<float>(row[i]);
  return scratch;
}

}  // namespace attendant::cpu
