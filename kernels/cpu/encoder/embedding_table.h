// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/arena.h"
#include "kernels/core/dtype.h"
#include "kernels/core/shape.h"

namespace attendant::cpu {

// One embedding table [rows, hidden] in an arena, in the format that matmuls read: f32, bf16, or
// int8 with a scale for each row.
class EmbeddingTable {
 public:
  EmbeddingTable() = default;
  // Room for `rows` rows, for FillRows. The arena must outlive the table.
  EmbeddingTable(int64_t rows, int64_t hidden, DType dtype, Arena& arena);

  // Rows [begin, end) of `table` [rows, hidden], times `scale`. Several threads may fill different
  // rows at once.
  void FillRows(TensorView<const float, 2> table, int64_t begin, int64_t end, float scale = 1);

  // Row `index` as f32 [hidden]: in the table itself, or in `scratch` [hidden].
  const float* Row(int64_t index, float* scratch) const;

  int64_t bytes() const;

 private:
  void FillInt8Row(const float* values, int64_t row, float scale);

  int64_t rows_ = 0;
  int64_t hidden_ = 0;
  float* f32_ = nullptr;  // one of the three
  uint16_t* bf16_ = nullptr;
  int8_t* int8_ = nullptr;
  float* scales_ = nullptr;  // [rows], of int8
};

}  // namespace attendant::cpu
