// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/encoder_case.h"

#include <algorithm>
#include <cmath>

namespace attendant::cuda_test {
namespace {

// splitmix64: the same numbers everywhere.
uint64_t Next(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// In [-1, 1).
float NextFloat(uint64_t& state) { return static_cast<float>(Next(state) >> 40) * 0x1p-23f - 1.0f; }

}  // namespace

AttendantCudaConfig SmallConfig() {
  return {.layers = 2,
          .heads = 2,
          .hidden = 64,
          .ffn = 128,
          .vocab = 50,
          .max_positions = 256,
          .segment_types = 2,
          .layer_norm_epsilon = 1e-12f,
          .activation = ATTENDANT_CUDA_GELU_ERF};
}

RandomEncoder::RandomEncoder(const AttendantCudaConfig& config, uint32_t seed)
    : config_(config), random_(seed) {
  const int64_t hidden = config.hidden;
  weights_.token_embedding = Take(config.vocab * hidden, 1.0f);
  weights_.position_embedding = Take(config.max_positions * hidden, 0.5f);
  weights_.segment_embedding = Take(config.segment_types * hidden, 0.2f);
  weights_.embedding_norm = TakeNorm();
  for (int64_t i = 0; i < config.layers; ++i) {
    AttendantCudaLayer layer{};
    layer.query = TakeLinear(hidden, hidden);
    layer.key = TakeLinear(hidden, hidden);
    layer.value = TakeLinear(hidden, hidden);
    layer.attention_output = TakeLinear(hidden, hidden);
    layer.attention_norm = TakeNorm();
    layer.ffn_up = TakeLinear(config.ffn, hidden);
    layer.ffn_down = TakeLinear(hidden, config.ffn);
    layer.ffn_norm = TakeNorm();
    layers_.push_back(layer);
  }
  weights_.layers = layers_.data();
}

const float* RandomEncoder::Take(int64_t count, float spread, float middle) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = middle + spread * NextFloat(random_);
  tensors_.push_back(std::move(values));
  return tensors_.back().data();
}

AttendantCudaLinear RandomEncoder::TakeLinear(int64_t outputs, int64_t inputs) {
  const float spread = 1.7f / std::sqrt(static_cast<float>(inputs));
  const float* weight = Take(outputs * inputs, spread);
  return {.weight = weight, .bias = Take(outputs, 0.1f)};
}

AttendantCudaNorm RandomEncoder::TakeNorm() {
  const float* gamma = Take(config_.hidden, 0.2f, 1.0f);
  return {.gamma = gamma, .beta = Take(config_.hidden, 0.1f)};
}

void PackedSequences::Append(const AttendantCudaConfig& config, int64_t len, uint32_t seed) {
  uint64_t random = seed;
  for (int64_t i = 0; i < len; ++i) {
    ids_.push_back(static_cast<int32_t>(Next(random) % static_cast<uint64_t>(config.vocab)));
    positions_.push_back(static_cast<int32_t>(i));
    segments_.push_back(i > len / 2 && config.segment_types > 1 ? 1 : 0);
  }
  starts_.push_back(starts_.back() + len);
}

AttendantCudaBatch PackedSequences::view() const {
  return {.tokens = tokens(),
          .batch = batch(),
          .token_ids = ids_.data(),
          .positions = positions_.data(),
          .segment_ids = segments_.data(),
          .seq_starts = starts_.data()};
}

PackedSequences RandomBatch(const AttendantCudaConfig& config, const std::vector<int64_t>& lens,
                            uint32_t seed) {
  PackedSequences batch;
  for (const int64_t len : lens) batch.Append(config, len, seed++);
  return batch;
}

double CosineDistance(const float* a, const float* b, int64_t count) {
  double aa = 0, bb = 0, ab = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return 2;
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
    ab += static_cast<double>(a[i]) * b[i];
  }
  return aa == 0 || bb == 0 ? 2 : 1 - ab / std::sqrt(aa * bb);
}

double LargestDifference(const float* a, const float* b, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

}  // namespace attendant::cuda_test
