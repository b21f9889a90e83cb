// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The feed-forward network's nonlinearity. The two GELUs differ by up to 5e-4: follow the model.
enum class Activation : uint8_t { kGeluErf, kGeluTanh, kRelu };

// What an encoder's first states are made from.
enum class EncoderInput : uint8_t {
  kTokens,  // ids, positions and segments: norm(sum of their embeddings)
  kStates,  // the caller's own states
};

// Where a branch of a layer, attention or ffn, is normalized.
enum class NormPlace : uint8_t {
  kPost,  // x = norm(x + branch(x))
  kPre,   // x = x + branch(norm(x))
};

// Biases of linear layers and beta of norms.
enum class Biases : uint8_t {
  kRequired,
  kOptional,  // an absent one stands for zeros
};

// A transformer encoder as data: dimensions, and a switch for everything in which encoders differ.
//
//   x = input
//   attention, then ffn, of every layer:  x = norm(x + branch(x)), or as norm_place has it
//     attention(x) = attention_output(heads(query(x), key(x), value(x)))
//     ffn(x)       = ffn_down(activation(ffn_up(x)))
//   x = final_norm(x), where there is one
//
// A back end computes what a switch says, or refuses it by its name (CheckComputed); none knows a
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
  bool final_norm = false;
  Biases biases = Biases::kRequired;

  int64_t head_dim() const { return hidden / heads; }
  friend bool operator==(const EncoderConfig&, const EncoderConfig&) = default;
};

// OK when every dimension is positive and at most its limit (weight_checks.h; a tensor has fewer
// than 2^31 elements), hidden is a multiple of heads, and epsilon is in (0, 1). Else
// INVALID_ARGUMENT naming the field and its value.
absl::Status Validate(const EncoderConfig& config);

// For a back end that computes `config` as if it were `computed`: OK when that is the same, else
// UNIMPLEMENTED naming `backend` and the first switch that differs.
absl::Status CheckComputed(absl::string_view backend, const EncoderConfig& computed,
                           const EncoderConfig& config);

}  // namespace attendant
