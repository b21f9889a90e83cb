// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/attention/sequences.h"
#include "kernels/cpu/matmul/matmul.h"

// The rows of operands of one head, one for each token, as matmuls take them: in blocks that lie
// end to end.
namespace attendant::attention {

// Token `token` of all the sequences' tokens. REQUIRES: rows.heads == 1.
template <typename Byte>
Byte* TokenRow(const Rows<Byte>& rows, const Sequences& sequences, DType dtype, int64_t token) {
  if (sequences.packed()) return rows.values + token * rows.row_stride * ValueBytes(dtype);
  const int64_t seq = sequences.seq();
  return rows.at(sequences, dtype, token / seq, 0, token % seq);
}

template <typename Byte>
bool LieEndToEnd(const Rows<Byte>& rows, const Sequences& sequences) {
  return rows.row_stride == rows.dim &&
         (sequences.packed() || rows.batch_stride == sequences.seq() * rows.dim);
}

// Rows [begin, begin + count) end to end, readable up to the next multiple of kRowGranularity: the
// caller's own where they are so, else a copy in `block`.
inline const std::byte* GatherRows(const InputRows& rows, const Sequences& sequences, DType dtype,
                                   int64_t begin, int64_t count, std::byte* block) {
  if (LieEndToEnd(rows, sequences) && count % cpu::kRowGranularity == 0) {
    return TokenRow(rows, sequences, dtype, begin);
  }
  const int64_t bytes = rows.dim * ValueBytes(dtype);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(block + i * bytes, TokenRow(rows, sequences, dtype, begin + i),
                static_cast<size_t>(bytes));
  }
  // The padding of a matmul's rows must be numbers: arithmetic on NaN may be slow.
  std::memset(block + count * bytes, 0,
              static_cast<size_t>((cpu::RoundUpRows(count) - count) * bytes));
  return block;
}

inline void ScatterRows(const std::byte* block, const OutputRows& rows, const Sequences& sequences,
                        DType dtype, int64_t begin, int64_t count) {
  const int64_t bytes = rows.dim * ValueBytes(dtype);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(TokenRow(rows, sequences, dtype, begin + i), block + i * bytes,
                static_cast<size_t>(bytes));
  }
}

}  // namespace attendant::attention
