// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The feed-forward network's nonlinearity. The two GELUs differ by up to 5e-4: follow the model.
enum class Activation : uint8_t { kGeluErf, kGeluTanh, kRelu, kSilu };

// The sources of an encoder's first states.
enum class EncoderInput : uint8_t {
  kTokens,  // the sum of the embeddings of ids, of segments and learned positions where there are
            // any, and the norm where embedding_norm
  kStates,  // the caller's own states
};

// The place of the norm in a branch of a layer (attention or ffn).
enum class NormPlace : uint8_t {
  kPost,  // x = norm(x + branch(x))
  kPre,   // x = x + branch(norm(x))
  kBoth,  // x = x + output_norm(branch(norm(x)))
};

enum class NormKind : uint8_t {
  kLayer,  // (x - mean) / sqrt(variance + epsilon) * gamma + beta
  kRms,    // x / sqrt(mean of squares + epsilon) * gamma
};

// A norm of queries and of keys, before they turn.
enum class QueryKeyNorm : uint8_t {
  kNone,
  kHead,   // a kRms of each head, of the same gamma for all heads
  kWhole,  // one of norm_kind of all heads together
};

// Biases of linear layers and beta of norms.
enum class Biases : uint8_t {
  kRequired,
  kOptional,  // an absent one stands for zeros
};

// The position encoding.
enum class Positions : uint8_t {
  kLearned,  // by an embedding, as part of the input
  kRotary,   // by angles that turn queries and keys (Su et al. 2021)
  kNone,     // not at all, or by the score bias
};

// A term added to a score, for each head by the distance from the query's position to the key's.
enum class ScoreBias : uint8_t {
  kNone,
  kBuckets,  // a weight for each bucket of distances, as in T5; the same in all layers
  kAlibi,    // -slope * |distance| (Press, Smith, Lewis 2022); likewise
  // (q key(r) + query(r) k) * scale (He et al. 2021), for the embedding r [hidden] of the bucket
  // (DisentangledBucket), and the layer's own query and key.
  kDisentangled,
};

inline constexpr double kMaxRotaryBase = 1e15;

// Slower turns of pairs whose waves are long beside the positions that a model was first trained
// on, as Llama 3 has them: those of a pair that turns less than `low` times on the way are divided
// by `factor`, those of one that turns more than `high` times stay, between them is a straight
// line.
struct LongWaves {
  double factor = 1;  // 1: none is slower
  double low = 1, high = 4;
  int64_t trained_positions = 8192;
  friend bool operator==(const LongWaves&, const LongWaves&) = default;
};

// Rotary positions: pair i of a head, values i and i + head_dim / 2, turns by
// position * frequency_scale * base^(-2i / head_dim), or as long_waves has it.
struct Rotary {
  double base = 10000;  // from 1 to kMaxRotaryBase: far smaller ones turn by angles without end
  double frequency_scale = 1;
  LongWaves long_waves{};
  // [head_dim / 2]: the rate of each pair as a checkpoint stores it, instead of the numbers above;
  // or empty.
  std::vector<float> rates{};

  // The turn of pair `pair` from one position to the next, in radians. In f32 and rounded where
  // PyTorch rounds it: one rounding more would turn a pair by 0.005 at position 100,000.
  float Rate(int64_t pair, int64_t head_dim) const;
  friend bool operator==(const Rotary&, const Rotary&) = default;
};

// Far above any model there is. Positions that no stored table limits have tables made from them.
inline constexpr int64_t kMaxLayers = 1 << 12;
inline constexpr int64_t kMaxComputedPositions = 1 << 17;
inline constexpr int64_t kMaxTableValues = 1 << 28;
inline constexpr int64_t kMaxExperts = 1 << 10;

// A transformer encoder as data: dimensions, and a switch for everything in which encoders differ.
//
//   x = input, or embedding_projection(input) where there is an embedding_width
//   attention, then ffn, of every layer:  x = norm(x + branch(x)), or as norm_place has it
//     attention(x) = attention_output(heads(query(x), key(x), value(x)))
//     heads(q, k, v) = softmax(q k^T * scale + score bias) v, of each head
//     ffn(x)       = ffn_down(activation(ffn_up(x))), or
//                    ffn_down(activation(ffn_gate(x)) * ffn_up(x)) where gated_ffn, or, in
//                    expert_layers, the sum over the chosen experts of
//                    weight * down(activation(up(x))), plus experts_bias
//       chosen are the experts_per_token of largest softmax(router x), which is their weight; among
//       equals the first ones
//   x = final_norm(x), where there is one
//
// A back end computes a switch, or refuses it by its name (CheckComputed); none knows a
// model family. A new switch is a field whose default is BERT's, and a line of CheckComputed. Plain
// data, fixed once loaded.
struct EncoderConfig {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t vocab = 0;          // these three of kTokens only
  int64_t max_positions = 0;  // a sequence's positions are below it
  int64_t segment_types = 0;  // a token's segment id is below it
  float layer_norm_epsilon = 0;
  Activation activation = Activation::kGeluErf;
  EncoderInput input = EncoderInput::kTokens;
  NormPlace norm_place = NormPlace::kPost;
  NormKind norm_kind = NormKind::kLayer;
  bool embedding_norm = true;
  // kTokens only: columns of the embeddings and of their norm, which a linear map takes to hidden;
  // or 0: hidden, and no map
  int64_t embedding_width = 0;
  bool first_attention_norm = true;  // false: attention of layer 0 has none; kPre only
  // kPost only: behind attention is x = norm(x + output_norm(x + branch(x))).
  bool second_attention_norm = false;
  bool final_norm = false;
  float final_norm_epsilon = 0;  // of final_norm, or 0: layer_norm_epsilon
  Biases biases = Biases::kRequired;
  bool gated_ffn = false;
  int64_t experts = 0;            // these three where there are expert_layers, without gated_ffn
  int64_t experts_per_token = 0;  // from 1 to experts
  std::bitset<static_cast<size_t>(kMaxLayers)> expert_layers{};
  int64_t head_width = 0;  // head_dim, or 0: hidden / heads
  int64_t kv_heads = 0;    // so many heads of keys and values share all queries, or 0: heads
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  bool causal = false;             // a query attends to keys at its place and before only
  bool unattended_tokens = false;  // a sequence may end in tokens that none attends to
  float query_scale = 0;           // scale of scores, or 0: 1 / sqrt(head_dim)
  float embedding_scale = 1;       // a factor of embeddings of tokens
  // The token whose embedding is zeros; those of the other tokens in its sequence grow as their
  // share falls (base/token_scales.h). -1: none.
  int64_t dropped_token = -1;
  Positions positions = Positions::kLearned;
  Rotary rotary{};        // kRotary only
  Rotary local_rotary{};  // likewise, of local layers
  ScoreBias score_bias = ScoreBias::kNone;
  int64_t bias_buckets = 0;       // of both that have some: half of them for keys behind the query
  int64_t bias_max_distance = 0;  // likewise: from there on all distances share a bucket
  // A query of a local layer attends to keys up to `window` positions away; 0: to itself alone.
  int64_t window = 0;
  std::bitset<static_cast<size_t>(kMaxLayers)> local_layers{};

  float final_epsilon() const {
    return final_norm_epsilon > 0 ? final_norm_epsilon : layer_norm_epsilon;
  }
  bool projects_embeddings() const { return embedding_width > 0 && input == EncoderInput::kTokens; }
  int64_t input_width() const { return projects_embeddings() ? embedding_width : hidden; }
  int64_t head_dim() const { return head_width > 0 ? head_width : hidden / heads; }
  int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t context_width() const { return heads * head_dim(); }
  int64_t key_width() const { return key_heads() * head_dim(); }  // and that of values
  int64_t qkv_width() const { return context_width() + 2 * key_width(); }
  int64_t ffn_inputs() const { return gated_ffn ? 2 * ffn : ffn; }  // of gate and up together
  bool is_local(int64_t layer) const { return local_layers[static_cast<size_t>(layer)]; }
  bool has_experts(int64_t layer) const { return expert_layers[static_cast<size_t>(layer)]; }
  float score_scale() const {
    return query_scale > 0 ? query_scale : 1 / std::sqrt(static_cast<float>(head_dim()));
  }
  bool norms_outputs() const { return norm_place == NormPlace::kBoth; }
  bool norms_attention_output() const { return norms_outputs() || second_attention_norm; }
  // The size of the gamma of a norm of queries, or of keys, which are `width` wide.
  int64_t query_key_norm_size(int64_t width) const {
    return query_key_norm == QueryKeyNorm::kWhole ? width : head_dim();
  }
  // True if attention depends on distances between positions.
  bool is_relative() const { return score_bias != ScoreBias::kNone || local_layers.any(); }
  friend bool operator==(const EncoderConfig&, const EncoderConfig&) = default;
};

// OK when every dimension is positive and at most its limit (weight_checks.h; a tensor has fewer
// than 2^31 elements), heads are a multiple of kv_heads, hidden is one of heads unless
// there is a head_width, epsilon is in (0, 1), and the switches fit each other. Else
// INVALID_ARGUMENT naming the field and its value.
absl::Status Validate(const EncoderConfig& config);

// Checks that a back end computes every switch of `config`. `computed` is `config` reduced to the
// switches that the back end computes. OK if both are equal, else UNIMPLEMENTED naming `backend`
// and a switch that differs.
absl::Status CheckComputed(absl::string_view backend, const EncoderConfig& computed,
                           const EncoderConfig& config);

}  // namespace attendant
