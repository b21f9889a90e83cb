// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/core/dtype.h"

namespace attendant::attention {

// The sequences of one side of an attention (its queries, or its keys and values):
//   dense   batch sequences of seq tokens each
//   packed  laid end to end; sequence i is tokens starts[i] .. starts[i + 1]
// A sequence may be empty. `starts` must outlive the object.
class Sequences {
 public:
  Sequences() = default;
  static Sequences Dense(int64_t batch, int64_t seq);
  // [batch + 1]. Looks at each once; they need not have been checked.
  static Sequences Packed(std::span<const int64_t> starts);

  bool packed() const { return packed_; }
  int64_t seq() const { return seq_; }  // of dense ones
  int64_t batch() const { return batch_; }
  std::span<const int64_t> starts() const { return starts_; }  // empty when dense

  // REQUIRES of all below: CheckSequences accepts them; index is in [0, batch()).
  int64_t start(int64_t index) const {
    return packed_ ? starts_[static_cast<size_t>(index)] : index * seq_;
  }
  int64_t len(int64_t index) const { return packed_ ? start(index + 1) - start(index) : seq_; }
  int64_t tokens() const { return packed_ ? starts_.back() : batch_ * seq_; }
  int64_t max_len() const { return max_len_; }

 private:
  bool packed_ = false;
  int64_t batch_ = 0;
  int64_t seq_ = 0;
  int64_t max_len_ = 0;
  std::span<const int64_t> starts_;
};

// The same number of sequences with the same lengths.
bool SameLengths(const Sequences& a, const Sequences& b);

// Bytes of one value of an operand. REQUIRES: f32 or bf16.
inline int64_t ValueBytes(DType dtype) { return dtype == DType::kBf16 ? 2 : 4; }

// An operand's rows, one [dim] for each head of each token; the values of a row lie side by side.
// Never owns. Strides are counted in values; `batch_stride` has a meaning when sequences are dense.
template <typename Byte>
struct Rows {
  Byte* values = nullptr;
  int64_t heads = 0;
  int64_t dim = 0;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;

  // [tokens, heads, dim]; of dense sequences [batch, seq, heads, dim].
  static Rows TokensFirst(Byte* values, int64_t heads, int64_t dim, int64_t seq = 0) {
    return {values, heads, dim, Product(seq, heads, dim), dim, Product(heads, dim)};
  }
  // [batch, heads, seq, dim], as PyTorch's scaled_dot_product_attention takes them. Dense only.
  static Rows HeadsFirst(Byte* values, int64_t heads, int64_t dim, int64_t seq) {
    return {values, heads, dim, Product(heads, seq, dim), Product(seq, dim), dim};
  }

  // The first value of the row of (sequence, head, token of the sequence).
  Byte* at(const Sequences& sequences, DType dtype, int64_t sequence, int64_t head,
           int64_t token) const {
    const int64_t first =
        sequences.packed() ? sequences.start(sequence) * row_stride : sequence * batch_stride;
    return values + (first + head * head_stride + token * row_stride) * ValueBytes(dtype);
  }

 private:
  // Sizes may be a client's and unchecked: an overflow wraps, and Measure refuses it.
  static int64_t Product(int64_t a, int64_t b, int64_t c = 1) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) *
                                static_cast<uint64_t>(c));
  }
};

using InputRows = Rows<const std::byte>;
using OutputRows = Rows<std::byte>;

}  // namespace attendant::attention
