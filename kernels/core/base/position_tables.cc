// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/position_tables.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "kernels/core/base/distances.h"

namespace attendant {

RotaryTable::RotaryTable(const Rotary& rotary, int64_t positions, int64_t head_dim)
    : pairs_(head_dim / 2), values_(static_cast<size_t>(positions * head_dim)) {
  for (int64_t i = 0; i < pairs_; ++i) {
    const float rate = rotary.Rate(i, head_dim);
    for (int64_t position = 0; position < positions; ++position) {
      // In f32, as the models were trained with it.
      const double angle = static_cast<double>(static_cast<float>(position) * rate);
      const auto at = static_cast<size_t>(position * head_dim + i);
      values_[at] = static_cast<float>(std::cos(angle));
      values_[at + static_cast<size_t>(pairs_)] = static_cast<float>(std::sin(angle));
    }
  }
}

std::vector<float> ScoresByDistance(const EncoderConfig& config,
                                    TensorView<const float, 2> weights) {
  std::vector<float> scores;
  const bool alibi = config.score_bias == ScoreBias::kAlibi;
  if (!alibi && config.score_bias != ScoreBias::kBuckets) return scores;
  const std::vector<float> slopes = AlibiSlopes(config.heads);
  scores.reserve(static_cast<size_t>(config.heads * (2 * config.max_positions - 1)));
  for (int64_t head = 0; head < config.heads; ++head) {
    for (int64_t distance = 1 - config.max_positions; distance < config.max_positions; ++distance) {
      if (alibi) {
        scores.push_back(-slopes[static_cast<size_t>(head)] *
                         static_cast<float>(std::abs(distance)));
      } else {
        const int64_t bucket =
            DistanceBucket(distance, config.bias_buckets, config.bias_max_distance);
        scores.push_back(weights.row(bucket)[head]);
      }
    }
  }
  return scores;
}

}  // namespace attendant
