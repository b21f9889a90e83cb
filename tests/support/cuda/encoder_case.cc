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
  AttendantCudaConfig config{};
  config.layers = 2;
  config.heads = 2;
  config.hidden = 64;
  config.ffn = 128;
  config.vocab = 50;
  config.max_positions = 256;
  config.segment_types = 2;
  config.layer_norm_epsilon = 1e-12f;
  config.activation = ATTENDANT_CUDA_GELU_ERF;
  return config;
}

RandomEncoder::RandomEncoder(const AttendantCudaConfig& config, uint32_t seed, const Parts& parts)
    : config_(config), parts_(parts), random_(seed) {
  const int64_t width = config.embedding_width > 0 ? config.embedding_width : config.hidden;
  weights_.token_embedding = Take(config.vocab * width, 1.0f);
  if (parts.learned_positions) {
    weights_.position_embedding = Take(config.max_positions * width, 0.5f);
  }
  weights_.segment_embedding = Take(config.segment_types * width, 0.2f);
  if (parts.embedding_norm) weights_.embedding_norm = TakeNorm(width);
  if (config.embedding_width > 0) {
    weights_.embedding_projection = TakeLinear(config.hidden, width);
  }
  for (int64_t i = 0; i < config.layers; ++i) {
    AttendantCudaLayer layer = i > 0 && parts.shared_layers ? layers_.front() : TakeLayer(i == 0);
    layer.local = static_cast<int32_t>(parts.local_layers >> i & 1u);
    layers_.push_back(layer);
  }
  weights_.layers = layers_.data();
  if (parts.final_norm) weights_.final_norm = TakeNorm(config.hidden);
  if (parts.rotary_base > 0) weights_.rotary = TakeAngles(parts.rotary_base);
  if (parts.local_rotary_base > 0) weights_.local_rotary = TakeAngles(parts.local_rotary_base);
  if (parts.score_by_distance) {
    weights_.score_by_distance = Take(config.heads * (2 * config.max_positions - 1), 3.0f);
  }
}

AttendantCudaLayer RandomEncoder::TakeLayer(bool first) {
  const int64_t hidden = config_.hidden;
  const int64_t head_dim = config_.head_width > 0 ? config_.head_width : hidden / config_.heads;
  const int64_t context = config_.heads * head_dim;
  const int64_t keys = config_.kv_heads > 0 ? config_.kv_heads * head_dim : context;
  AttendantCudaLayer layer{};
  layer.query = TakeLinear(context, hidden);
  layer.key = TakeLinear(keys, hidden);
  layer.value = TakeLinear(keys, hidden);
  layer.attention_output = TakeLinear(hidden, context);
  if (!first || parts_.first_attention_norm) layer.attention_norm = TakeNorm(hidden);
  if (config_.gated_ffn != 0) layer.ffn_gate = TakeLinear(config_.ffn, hidden);
  layer.ffn_up = TakeLinear(config_.ffn, hidden);
  layer.ffn_down = TakeLinear(hidden, config_.ffn);
  layer.ffn_norm = TakeNorm(hidden);
  if (config_.norm_place == ATTENDANT_CUDA_NORM_BOTH) {
    layer.attention_output_norm = TakeNorm(hidden);
    layer.ffn_output_norm = TakeNorm(hidden);
  }
  if (parts_.second_attention_norm) layer.attention_output_norm = TakeNorm(hidden);
  if (parts_.whole_query_key_norm) {
    layer.whole_query_norm = TakeNorm(context);
    layer.whole_key_norm = TakeNorm(keys);
  }
  if (parts_.query_key_norm) {
    layer.query_norm = Take(head_dim, 0.2f, 1.0f);
    layer.key_norm = Take(head_dim, 0.2f, 1.0f);
  }
  return layer;
}

const float* RandomEncoder::TakeAngles(double base) {
  const int64_t head_dim =
      config_.head_width > 0 ? config_.head_width : config_.hidden / config_.heads;
  const int64_t pairs = head_dim / 2;
  std::vector<float> table(static_cast<size_t>(config_.max_positions * head_dim));
  for (int64_t position = 0; position < config_.max_positions; ++position) {
    for (int64_t i = 0; i < pairs; ++i) {
      const double angle =
          static_cast<double>(position) *
          std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(head_dim));
      const auto at = static_cast<size_t>(position * head_dim + i);
      table[at] = static_cast<float>(std::cos(angle));
      table[at + static_cast<size_t>(pairs)] = static_cast<float>(std::sin(angle));
    }
  }
  tensors_.push_back(std::move(table));
  return tensors_.back().data();
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
  return {.weight = weight, .bias = parts_.biases ? Take(outputs, 0.1f) : nullptr};
}

AttendantCudaNorm RandomEncoder::TakeNorm(int64_t width) {
  const float* gamma = Take(width, 0.2f, 1.0f);
  return {.gamma = gamma, .beta = parts_.biases ? Take(width, 0.1f) : nullptr};
}

void PackedSequences::Append(const AttendantCudaConfig& config, int64_t len, uint32_t seed,
                             const Holes& holes) {
  uint64_t random = seed;
  const bool odd = seed % 2 != 0;
  for (int64_t i = 0; i < len; ++i) {
    ids_.push_back(static_cast<int32_t>(Next(random) % static_cast<uint64_t>(config.vocab)));
    positions_.push_back(static_cast<int32_t>(odd && holes.gaps ? i + i / 5 : i));
    if (config.scales_tokens != 0) scales_.push_back(static_cast<float>(i % 4) / 2);
    segments_.push_back(i > len / 2 && config.segment_types > 1 ? 1 : 0);
  }
  starts_.push_back(starts_.back() + len);
  keys_.push_back(odd && holes.unattended ? std::max<int64_t>(1, len - 5) : len);
}

AttendantCudaBatch PackedSequences::view() const {
  return {.tokens = tokens(),
          .batch = batch(),
          .token_ids = ids_.data(),
          .positions = positions_.data(),
          .segment_ids = segments_.data(),
          .seq_starts = starts_.data(),
          .token_scales = scales_.empty() ? nullptr : scales_.data(),
          .keys = keys_.data()};
}

PackedSequences RandomBatch(const AttendantCudaConfig& config, const std::vector<int64_t>& lens,
                            uint32_t seed, const Holes& holes) {
  PackedSequences batch;
  for (const int64_t len : lens) batch.Append(config, len, seed++, holes);
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
