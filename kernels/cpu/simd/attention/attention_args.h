// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::cpu {

// A side of an attention window without a limit.
inline constexpr int64_t kAllKeys = int64_t{1} << 62;

// Queries of one task at most: each call packs the keys and values that it sees anew, which costs
// about keys * head_dim beside matmuls of keys * queries * head_dim. Longer pieces work, and hold
// what is packed for so many queries at a time.
inline constexpr int64_t kMaxTaskQueries = 256;

// One head's attention for the query rows [query_begin, query_end):
//
//   weights [queries, keys]  = softmax over keys of (q k^T * scale + bias)
//   out [queries, value_dim] = weights v
//
// Query i attends to the keys that all of these let through: the window [i - keys_before,
// i + keys_after] (a causal mask is keys_after = 0; the first query faces the first key, whatever
// the two counts are), `allowed`, and `bias` where it is not -inf. A query with no key left gets
// zeros. Keys outside the window of a piece of queries are not even read.
//
// Strides count values from one row to the next, and may be 0 or negative. A bias that depends on
// key - query alone, as ALiBi's, needs queries + keys - 1 values: bias_stride = -1, `bias` at the
// value of key 0 and query 0. One that is the same for all queries, as padding, has stride 0.
//
// A row of `out` is the same bits however the queries are split into calls, where all values are
// finite. Rows are computed in tiles, and steps take several keys: a value that is not finite may
// reach rows nearby that do not see its key, as 0 * NaN. Which ones depends on the split.
struct AttentionArgs {
  const void* q = nullptr;   // [queries, head_dim], f32 or bf16, as k and v
  const void* k = nullptr;   // [keys, head_dim]
  const void* v = nullptr;   // [keys, value_dim]
  void* out = nullptr;       // [queries, value_dim]
  bool out_is_bf16 = false;  // else f32
  int64_t q_stride = 0;
  int64_t k_stride = 0;
  int64_t v_stride = 0;
  int64_t out_stride = 0;

  int64_t keys = 0;
  int64_t head_dim = 0;
  int64_t value_dim = 0;
  int64_t query_begin = 0;
  int64_t query_end = 0;
  float scale = 0;

  const float* bias = nullptr;  // [queries, keys], added to the scaled scores; nullptr: none
  int64_t bias_stride = 0;
  const uint8_t* allowed = nullptr;  // [queries, keys], 0: masked; nullptr: all are allowed
  int64_t allowed_stride = 0;
  int64_t keys_before = kAllKeys;  // in [0, kAllKeys]
  int64_t keys_after = kAllKeys;   // in [0, kAllKeys]

  // attention_scratch_bytes(keys, head_dim, value_dim) bytes, best aligned to 64.
  void* scratch = nullptr;
};

}  // namespace attendant::cpu
