// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/disentangled_scores.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "kernels/core/base/distances.h"
#include "kernels/core/base/half.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/matmul/packed_linear.h"

namespace attendant::cpu {
namespace {

// Embeddings of distances that one matmul projects.
constexpr int64_t kProjectedRows = 128;

// Some rows of a table, with room for a matmul's.
std::vector<float> CopyRows(TensorView<const float, 2> table, int64_t begin, int64_t rows) {
  std::vector<float> copy(static_cast<size_t>(RoundUpRows(rows) * table.dim(1)));
  std::copy_n(table.row(begin), rows * table.dim(1), copy.begin());
  return copy;
}

// [rows, 2 * context_width]: all distances as queries and as keys of a layer.
absl::StatusOr<std::vector<float>> Project(const Matmul& matmul, const EncoderWeights& weights,
                                           const EncoderLayerWeights& layer) {
  Arena memory(matmul.packed_bytes() + static_cast<int64_t>(matmul.scratchpad_bytes()) +
               2 * Arena::kAlignment);
  auto* const scratchpad =
      memory.Allocate<std::byte>(static_cast<int64_t>(matmul.scratchpad_bytes()));
  const PackedLinear linear = PackLinear(matmul, {&layer.query, &layer.key}, memory);
  const std::unique_ptr<MatmulExecutor> executor = matmul.NewExecutor(scratchpad);
  const int64_t rows = weights.score_bias.dim(0), columns = matmul.options().n;
  std::vector<float> projected(static_cast<size_t>(RoundUpRows(rows) * columns));
  for (int64_t row = 0; row < rows; row += kProjectedRows) {
    const int64_t count = std::min(kProjectedRows, rows - row);
    const std::vector<float> x = CopyRows(weights.score_bias, row, count);
    if (!executor->Run(count, x.data(), linear.weight, {.bias = linear.bias.data()},
                       projected.data() + row * columns)) {
      return absl::InternalError("a matmul of the embeddings of distances failed");
    }
  }
  return projected;
}

}  // namespace

int64_t DisentangledScores::row_stride() const { return RoundUp(buckets_, kDotGranularity); }

std::byte* DisentangledScores::PackedHead(int64_t layer, int64_t head) const {
  return packed_ + (layer * heads_ + head) * 2 * packed_bytes_;
}

absl::StatusOr<DisentangledScores> DisentangledScores::Create(const PackedLayers& layers,
                                                              const EncoderWeights& weights,
                                                              int load_threads) {
  const EncoderConfig& config = layers.config;
  DisentangledScores scores;
  if (config.score_bias != ScoreBias::kDisentangled) return scores;
  scores.kernels_ = &layers.rows.dots;
  scores.heads_ = config.heads;
  scores.head_dim_ = config.head_dim();
  scores.qkv_value_bytes_ = layers.qkv_value_bytes();
  scores.max_positions_ = config.max_positions;
  scores.buckets_ = config.bias_buckets;
  for (int64_t distance = 1 - config.max_positions; distance < config.max_positions; ++distance) {
    scores.bucket_at_distance_.push_back(static_cast<int32_t>(
        DisentangledBucket(distance, config.bias_buckets, config.bias_max_distance)));
  }
  scores.packed_bytes_ = RoundUp(
      scores.kernels_->packed_bytes(config.bias_buckets, config.head_dim()), Arena::kAlignment);
  const int64_t bytes = config.layers * config.heads * 2 * scores.packed_bytes_;
  scores.memory_ = Arena(bytes);
  scores.packed_ = scores.memory_.Allocate<std::byte>(bytes);
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<Matmul> matmul,
                             CreateMatmul(layers.level, {.dtype = DType::kF32,
                                                         .k = config.hidden,
                                                         .n = 2 * config.context_width(),
                                                         .max_rows = kProjectedRows,
                                                         .bias = true}));
  absl::Status failure;
  std::mutex mutex;
  RunLoadTasks(load_threads, config.layers, [&](int64_t layer) {
    const absl::Status status = scores.PackLayer(layers, weights, *matmul, layer);
    const std::lock_guard lock(mutex);
    failure.Update(status);
  });
  ATTENDANT_RETURN_IF_ERROR(failure);
  return scores;
}

absl::Status DisentangledScores::PackLayer(const PackedLayers& layers,
                                           const EncoderWeights& weights, const Matmul& matmul,
                                           int64_t layer) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<float> projected,
                             Project(matmul, weights, weights.layers[static_cast<size_t>(layer)]));
  const float scale = layers.config.score_scale();
  const bool bf16 = qkv_value_bytes_ == 2;
  const auto values = static_cast<size_t>(buckets_ * head_dim_);
  std::vector<float> vectors(values);
  std::vector<uint16_t> rounded(bf16 ? values : 0);
  for (int64_t part = 0; part < 2 * heads_; ++part) {  // the heads of queries, then those of keys
    for (int64_t bucket = 0; bucket < buckets_; ++bucket) {
      const float* from = projected.data() + (bucket * 2 * heads_ + part) * head_dim_;
      float* to = vectors.data() + bucket * head_dim_;
      for (int64_t i = 0; i < head_dim_; ++i) to[i] = from[i] * scale;
    }
    std::transform(vectors.begin(), vectors.begin() + static_cast<ptrdiff_t>(rounded.size()),
                   rounded.begin(), ToBf16);
    const void* source = vectors.data();
    if (bf16) source = rounded.data();
    std::byte* packed = PackedHead(layer, part % heads_) + part / heads_ * packed_bytes_;
    kernels_->pack(source, buckets_, head_dim_, packed);
  }
  return absl::OkStatus();
}

DisentangledScores::Scratch DisentangledScores::Allocate(Arena& arena, int64_t max_queries,
                                                         int64_t max_keys) const {
  const auto products = [&](int64_t rows) {
    return arena.Allocate<float>(RoundUp(rows, kDotGranularity) * row_stride());
  };
  return {.query_products = products(max_queries),
          .key_products = products(max_keys),
          .rows = arena.Allocate<std::byte>(kernels_->scratch_bytes(head_dim_))};
}

void DisentangledScores::Write(int64_t layer, int64_t head, const AttentionArgs& args,
                               std::span<const int32_t> positions, int64_t query_begin,
                               int64_t query_end, const Scratch& scratch, float* bias) const {
  const auto queries = positions.subspan(static_cast<size_t>(query_begin),
                                         static_cast<size_t>(query_end - query_begin));
  const auto keys = positions.first(static_cast<size_t>(args.keys));
  const auto [first_key, last_key] = std::minmax_element(keys.begin(), keys.end());
  const auto [first, last] = std::minmax_element(queries.begin(), queries.end());
  // The further behind the query, the lower the bucket.
  DotArgs dots{.count = buckets_,
               .width = head_dim_,
               .begin = BucketAt(*last_key - *first),
               .end = BucketAt(*first_key - *last) + 1,
               .y_stride = row_stride(),
               .scratch = scratch.rows};
  const std::byte* packed_queries = PackedHead(layer, head);
  dots.x = static_cast<const std::byte*>(args.q) + query_begin * args.q_stride * qkv_value_bytes_;
  dots.x_stride = args.q_stride;
  dots.rows = query_end - query_begin;
  dots.packed = packed_queries + packed_bytes_;
  dots.y = scratch.query_products;
  kernels_->multiply(dots);
  dots.x = args.k;
  dots.x_stride = args.k_stride;
  dots.rows = args.keys;
  dots.packed = packed_queries;
  dots.y = scratch.key_products;
  kernels_->multiply(dots);

  for (size_t query = 0; query < queries.size(); ++query) {
    const float* of_query = scratch.query_products + static_cast<int64_t>(query) * row_stride();
    const float* of_key = scratch.key_products;
    const int32_t* buckets = bucket_at_distance_.data() + Place(-queries[query]);
    for (const int32_t position : keys) {
      const int32_t bucket = buckets[position];
      *bias++ = of_query[bucket] + of_key[bucket];
      of_key += row_stride();
    }
  }
}

}  // namespace attendant::cpu
