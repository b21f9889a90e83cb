// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/workload.h"

#include <numeric>
#include <random>

namespace attendant::bench {

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

double Flops(const EncoderConfig& config, const std::vector<int64_t>& lens) {
  const auto layers = static_cast<double>(config.layers),
             hidden = static_cast<double>(config.hidden), ffn = static_cast<double>(config.ffn);
  double flops = 0;
  for (int64_t tokens : lens) {
    const auto len = static_cast<double>(tokens);
    flops += len * layers * (2 * (4 * hidden * hidden + 2 * hidden * ffn) + 4 * hidden * len);
  }
  return flops;
}

}  // namespace attendant::bench
