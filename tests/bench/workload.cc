// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/workload.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace attendant::bench {

namespace {

// Pairs of a query and a key that it attends to, in one head.
int64_t Scores(const EncoderConfig& config, int64_t layer, int64_t len) {
  const int64_t behind = config.is_local(layer) ? std::min(config.window, len - 1) : len - 1;
  const int64_t ahead = config.causal ? 0 : behind;
  // Of each side: as many as `side` for every token but the last `side` ones of that side.
  const auto pairs = [&](int64_t side) { return side * len - side * (side + 1) / 2; };
  return len + pairs(behind) + pairs(ahead);
}

// Products of queries with the keys of distances, and of keys with their queries, in one head.
int64_t DistanceTerms(const EncoderConfig& config, int64_t len) {
  if (config.score_bias != ScoreBias::kDisentangled) return 0;
  return 2 * len * std::min(config.bias_buckets, 2 * len - 1);
}

// Behind attention, for a token: of experts only those that it goes to.
int64_t WorkOnRows(const EncoderConfig& config, int64_t layer) {
  const int64_t attention_output = config.hidden * config.context_width();
  const int64_t ffn = config.hidden * (config.ffn_inputs() + config.ffn);
  if (!config.has_experts(layer)) return attention_output + ffn;
  return attention_output + config.hidden * config.experts + config.experts_per_token * ffn;
}

}  // namespace

std::vector<int64_t> MixedLens() {
  return {
#include "tests/bench/mixed_lengths.inc"
  };
}

std::vector<PackedBatch> MakeBatches(const EncoderConfig& config, const std::vector<int64_t>& lens,
                                     int64_t max_tokens) {
  std::mt19937 random(7);
  std::vector<PackedBatch> batches(1);
  for (int64_t len : lens) {
    if (batches.back().batch() > 0 && batches.back().tokens() + len > max_tokens) {
      batches.emplace_back();
    }
    std::vector<int32_t> ids, positions(static_cast<size_t>(len)), segments(positions.size(), 0);
    std::iota(positions.begin(), positions.end(), 0);
    for (int64_t i = 0; i < len; ++i) {
      ids.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(config.vocab)));
    }
    batches.back().Append(ids, positions, segments);
  }
  return batches;
}

double Flops(const EncoderConfig& config, const std::vector<int64_t>& lens, Pooling pooling) {
  const bool one_token = pooling == Pooling::kCls || pooling == Pooling::kLast;
  const int64_t qkv = config.hidden * config.qkv_width();
  double multiply_adds = 0;
  for (const int64_t len : lens) {
    const int64_t terms = DistanceTerms(config, len);
    const int64_t whole_layers = one_token ? config.layers - 1 : config.layers;
    for (int64_t layer = 0; layer < whole_layers; ++layer) {
      const int64_t attention = 2 * Scores(config, layer, len) + terms;
      multiply_adds += static_cast<double>(len * (qkv + WorkOnRows(config, layer)) +
                                           attention * config.context_width());
    }
    if (one_token) {
      multiply_adds += static_cast<double>(len * qkv + WorkOnRows(config, config.layers - 1));
    }
  }
  return 2 * multiply_adds;
}

}  // namespace attendant::bench
