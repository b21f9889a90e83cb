// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// The words for dimensions, defined here and nowhere else:
//
//   batch     sequences in a batch            layers   encoder layers
//   len       tokens of one sequence          heads    attention heads of a layer
//   seq       padded length of a batch        head_dim width of a head, mostly hidden / heads
//   tokens    sum of the batch's lengths      hidden   width of a token's state
//   vocab     words of the vocabulary         ffn      width inside the feed-forward network
//   queries   rows that attend, of a head     keys     rows that are attended to, of a head
//                                             value_dim width of a head's values, if not head_dim
//
// Hugging Face says token_type_ids for segment_ids, num_hidden_layers for layers and
// intermediate_size for ffn. Shapes are written [outermost, ..., innermost], row-major and f32
// unless said otherwise. `m n k` appear only where a matmul is wrapped: [m, k] x [k, n] -> [m, n].

namespace attendant {

// A typed pointer with its dimensions: row-major, dense, never owns and never allocates.
template <typename T, int rank>
class TensorView {
 public:
  TensorView() = default;
  TensorView(T* data, std::array<int64_t, rank> dims) : data_(data), dims_(dims) {}

  T* data() const { return data_; }
  int64_t dim(int index) const { return dims_[static_cast<size_t>(index)]; }
  const std::array<int64_t, rank>& dims() const { return dims_; }
  // Without data. A view of no rows may have data, and is not empty.
  bool empty() const { return data_ == nullptr; }

  int64_t size() const {
    int64_t elements = 1;
    for (int64_t dim : dims_) elements *= dim;
    return elements;
  }

  // Row `index` of the outermost dimension.
  T* row(int64_t index) const {
    int64_t stride = 1;
    for (int i = 1; i < rank; ++i) stride *= dims_[static_cast<size_t>(i)];
    return data_ + index * stride;
  }

 private:
  T* data_ = nullptr;
  std::array<int64_t, rank> dims_{};
};

}  // namespace attendant
