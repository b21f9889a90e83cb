// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/outputs.h"
#include "kernels/core/packed_batch.h"

namespace attendant::cpu {

// The rows of the last states that the outputs of some sequences of a batch are made of. Behind its
// keys and values the last layer computes these alone: the first token of a sequence, or its last
// one, where nothing but that token is pooled. For the work on rows they move to the front.
class LastRows {
 public:
  struct Range {  // in a sequence
    int64_t begin = 0, end = 0;

    int64_t size() const { return end - begin; }
  };

  // Finds the rows of the sequences [begin, end). `batch` and `spec` must outlive this object.
  LastRows(const PackedBatch& batch, const OutputSpec& spec, int64_t begin, int64_t end);

  // The rows of a sequence of the batch: all of them, one or none.
  Range of(int64_t sequence) const;
  // The number of rows of all sequences.
  int64_t count() const { return count_; }

  // Moves these rows of `rows`, which begins with the first sequence, to its first count(), and
  // back to their places. The other rows have unspecified contents then.
  void MoveToFront(std::byte* rows, int64_t row_bytes) const;
  void MoveBack(std::byte* rows, int64_t row_bytes) const;

 private:
  const PackedBatch& batch_;
  const OutputSpec& spec_;
  int64_t begin_, end_;
  int64_t count_ = 0;
};

}  // namespace attendant::cpu
