// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/cuda_interface.h"
#include "kernels/cuda/kernels/batch_counts.h"

// The layout of a batch on its way to the device: one block of pinned memory. The offsets depend on
// the bucket alone, so that a recorded graph finds each part at the same place. Host code, no CUDA
// calls.
namespace attendant::cuda {

// The bucket of a batch: the number of rows that it is computed with. `tokens` rounded up to a
// multiple of 16 up to 128, of 64 up to 1024, of 128 beyond. REQUIRES: tokens > 0.
int64_t BucketTokens(int64_t tokens);

// Every bucket that batches of up to `max_tokens` need, ascending.
std::vector<int64_t> ListBuckets(int64_t max_tokens);

// Matmuls are tuned for classes of buckets: class c takes those above 8 * 2^c up to 16 * 2^c rows.
int RowClass(int64_t rows);
int64_t SmallestOfClass(int row_class);  // its smallest bucket
int64_t LargestOfClass(int row_class);   // its largest

// The most sequences of a batch that is run by its bucket's graph. A graph launches blocks for as
// many as it was recorded for, and blocks without work cost time: batches of more, very short
// sequences are launched kernel by kernel.
int64_t GraphSequences(int64_t bucket);

// The offsets of the parts in bytes from the start of the block, each a multiple of 16.
struct BatchLayout {
  int64_t counts = 0;        // BatchCounts
  int64_t token_ids = 0;     // int32 [bucket]
  int64_t positions = 0;     // int32 [bucket]
  int64_t segment_ids = 0;   // int32 [bucket]
  int64_t token_scales = 0;  // float [bucket], or [0] without `scales_tokens`
  int64_t seq_starts = 0;    // int32 [sequences + 1]
  int64_t tasks = 0;         // AttentionTask [MaxAttentionTasks(bucket, sequences)]
  int64_t pool_tasks = 0;    // PoolTask [sequences]
  int64_t bytes = 0;         // of all

  friend bool operator==(const BatchLayout&, const BatchLayout&) = default;
};
// For batches of up to `bucket` tokens in sessions of up to `max_sequences` sequences.
BatchLayout LayOutBatch(int64_t bucket, int64_t max_sequences, bool scales_tokens);

// Writes the batch into `block` and returns how much there is of everything. `hidden` stands for
// "all" of a pooled vector's dimensions.
// REQUIRES: the batch fits the layout, and has token_scales only where that has; room for
// layout.bytes.
BatchCounts WriteBatch(const AttendantCudaBatch& batch,
                       const AttendantCudaSequenceOutputs* wanted,  // [batch]
                       int64_t hidden, const BatchLayout& layout, std::byte* block);

}  // namespace attendant::cuda
