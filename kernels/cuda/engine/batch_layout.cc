// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/batch_layout.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cuda/kernels/attention_plan.h"
#include "kernels/cuda/kernels/kernels.h"

namespace attendant::cuda {
namespace {

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

int64_t BucketStep(int64_t tokens) {
  if (tokens <= 128) return 16;
  return tokens <= 1024 ? 64 : 128;
}

template <typename T>
int64_t Place(int64_t count, int64_t& end) {
  const int64_t begin = end;
  end += RoundUp(count * static_cast<int64_t>(sizeof(T)), 16);
  return begin;
}

template <typename T>
T* At(std::byte* block, int64_t offset) {
  return reinterpret_cast<T*>(block + offset);
}

}  // namespace

int64_t BucketTokens(int64_t tokens) { return RoundUp(tokens, BucketStep(tokens)); }

std::vector<int64_t> ListBuckets(int64_t max_tokens) {
  std::vector<int64_t> buckets;
  for (int64_t tokens = 1; tokens <= max_tokens; tokens = buckets.back() + 1) {
    buckets.push_back(BucketTokens(tokens));
  }
  return buckets;
}

int RowClass(int64_t rows) {
  return rows <= 16 ? 0 : static_cast<int>(std::bit_width(static_cast<uint64_t>(rows - 1))) - 4;
}

int64_t SmallestOfClass(int row_class) {
  return row_class == 0 ? 16 : BucketTokens((int64_t{8} << row_class) + 1);
}

int64_t LargestOfClass(int row_class) { return int64_t{16} << row_class; }

// Sequences of 16 tokens on average, and some more.
int64_t GraphSequences(int64_t bucket) { return bucket / 16 + 8; }

BatchLayout LayOutBatch(int64_t bucket, int64_t max_sequences, bool scales_tokens) {
  const int64_t sequences = std::min(bucket, max_sequences);
  BatchLayout layout;
  layout.counts = Place<BatchCounts>(1, layout.bytes);
  layout.token_ids = Place<int32_t>(bucket, layout.bytes);
  layout.positions = Place<int32_t>(bucket, layout.bytes);
  layout.segment_ids = Place<int32_t>(bucket, layout.bytes);
  layout.token_scales = Place<float>(scales_tokens ? bucket : 0, layout.bytes);
  layout.seq_starts = Place<int32_t>(sequences + 1, layout.bytes);
  layout.tasks = Place<AttentionTask>(MaxAttentionTasks(bucket, sequences), layout.bytes);
  layout.pool_tasks = Place<PoolTask>(sequences, layout.bytes);
  return layout;
}

BatchCounts WriteBatch(const AttendantCudaBatch& batch, const AttendantCudaSequenceOutputs* wanted,
                       int64_t hidden, const BatchLayout& layout, std::byte* block) {
  const size_t id_bytes = static_cast<size_t>(batch.tokens) * sizeof(int32_t);
  std::memcpy(block + layout.token_ids, batch.token_ids, id_bytes);
  std::memcpy(block + layout.positions, batch.positions, id_bytes);
  std::memcpy(block + layout.segment_ids, batch.segment_ids, id_bytes);
  if (batch.token_scales != nullptr) {
    std::copy_n(batch.token_scales, batch.tokens, At<float>(block, layout.token_scales));
  }

  std::transform(batch.seq_starts, batch.seq_starts + batch.batch + 1,
                 At<int32_t>(block, layout.seq_starts),
                 [](int64_t start) { return static_cast<int32_t>(start); });
  const int64_t tasks =
      PlanSelfAttention({.seq_starts = {batch.seq_starts, static_cast<size_t>(batch.batch + 1)},
                         .keys = batch.keys,
                         .positions = batch.positions},
                        {At<AttentionTask>(block, layout.tasks),
                         static_cast<size_t>(MaxAttentionTasks(batch.tokens, batch.batch))});
  std::transform(wanted, wanted + batch.batch, At<PoolTask>(block, layout.pool_tasks),
                 [hidden](const AttendantCudaSequenceOutputs& one) {
                   return PoolTask{.pooling = one.pooling,
                                   .normalize = one.normalize,
                                   .dims = static_cast<int32_t>(one.dims > 0 ? one.dims : hidden),
                                   .unused = 0};
                 });
  const BatchCounts counts{.tokens = static_cast<int32_t>(batch.tokens),
                           .sequences = static_cast<int32_t>(batch.batch),
                           .attention_tasks = static_cast<int32_t>(tasks)};
  std::memcpy(block + layout.counts, &counts, sizeof(counts));
  return counts;
}

}  // namespace attendant::cuda
