// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/relative_scores.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "kernels/core/base/position_tables.h"

namespace attendant::cpu {

RelativeScores::RelativeScores(const EncoderConfig& config, const EncoderWeights& weights)
    : max_positions_(config.max_positions),
      causal_(config.causal),
      by_distance_(ScoresByDistance(config, weights.score_bias)) {
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    windows_.push_back(config.is_local(layer) ? config.window : kAllKeys);
  }
}

const float* RelativeScores::AtDistance(int64_t head) const {
  return by_distance_.data() + head * (2 * max_positions_ - 1) + max_positions_ - 1;
}

void RelativeScores::Apply(int64_t layer, int64_t head, AttentionArgs& args) const {
  args.keys_before = Window(layer);
  args.keys_after = causal_ ? 0 : Window(layer);
  if (by_distance_.empty()) return;
  args.bias = AtDistance(head);
  args.bias_stride = -1;
}

void RelativeScores::Write(int64_t layer, int64_t head, std::span<const int32_t> positions,
                           int64_t keys, int64_t query_begin, int64_t query_end,
                           float* bias) const {
  const auto key_positions = positions.first(static_cast<size_t>(keys));
  const float* by_distance = by_distance_.empty() ? nullptr : AtDistance(head);
  for (int64_t query = query_begin; query < query_end; ++query) {
    for (const int32_t key_position : key_positions) {
      const int64_t distance = key_position - positions[static_cast<size_t>(query)];
      const float in_window = by_distance == nullptr ? 0 : by_distance[distance];
      const bool seen = std::abs(distance) <= Window(layer) && !(causal_ && distance > 0);
      *bias++ = seen ? in_window : -INFINITY;
    }
  }
}

}  // namespace attendant::cpu
