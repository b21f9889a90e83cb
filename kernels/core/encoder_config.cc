// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/encoder_config.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/weight_checks.h"

namespace attendant {
namespace {

absl::Status ValidateEmbeddings(const EncoderConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"vocab", config.vocab, kMaxRows},
                                         {"max_positions", config.max_positions, kMaxRows},
                                         {"segment_types", config.segment_types, kMaxRows}}));
  if (config.dropped_token < -1 || config.dropped_token >= config.vocab) {
    return absl::InvalidArgumentError(absl::StrCat("dropped_token is ", config.dropped_token,
                                                   ", it must be below vocab, ", config.vocab));
  }
  const int64_t width = config.input_width();
  ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"embedding_width", width, kMaxWidth}}));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("embedding_projection", config.hidden, width));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("token_embedding", config.vocab, width));
  if (config.positions == Positions::kLearned) {
    ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("position_embedding", config.max_positions, width));
  }
  return CheckWeightSize("segment_embedding", config.segment_types, width);
}

absl::Status ValidateHeads(const EncoderConfig& config) {
  if (config.head_width == 0) {
    ATTENDANT_RETURN_IF_ERROR(CheckHeadsDivide(config.hidden, config.heads));
  } else {
    ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"head_width", config.head_width, kMaxWidth}}));
    ATTENDANT_RETURN_IF_ERROR(
        CheckBounds({{"heads * head_width", config.context_width(), kMaxWidth}}));
  }
  if (config.kv_heads == 0 || (config.kv_heads > 0 && config.heads % config.kv_heads == 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "heads is ", config.heads, ", it must be a multiple of kv_heads, ", config.kv_heads));
}

absl::Status CheckLongWaves(const char* name, const LongWaves& waves) {
  if (waves.factor >= 1 && std::isfinite(waves.factor) && waves.low > 0 && waves.low < waves.high &&
      std::isfinite(waves.high) && waves.trained_positions > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has long waves of factor ", waves.factor, ", from ", waves.low, " to ",
                   waves.high, " turns in ", waves.trained_positions,
                   " positions: the factor must be at least 1, the turns ",
                   "above 0 and rising, the positions above 0"));
}

// That there is one for each pair. A rate is from 0 to 1.
absl::Status CheckRates(const char* name, const std::vector<float>& rates, int64_t head_dim) {
  if (rates.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(rates.size()) != head_dim / 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has ", rates.size(), " rates, it must have one for each of ", head_dim / 2));
  }
  for (const float rate : rates) {
    if (rate >= 0 && rate <= 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has the rate ", rate, ", it must be from 0 to 1"));
  }
  return absl::OkStatus();
}

absl::Status CheckRotary(const char* name, const Rotary& rotary, int64_t head_dim) {
  ATTENDANT_RETURN_IF_ERROR(CheckLongWaves(name, rotary.long_waves));
  ATTENDANT_RETURN_IF_ERROR(CheckRates(name, rotary.rates, head_dim));
  if (rotary.base >= 1 && rotary.base <= kMaxRotaryBase && rotary.frequency_scale > 0 &&
      std::isfinite(rotary.frequency_scale)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name, " has base ", rotary.base, " and frequency_scale ", rotary.frequency_scale,
      ", the base must be from 1 to ", kMaxRotaryBase, ", the scale finite and above 0"));
}

// Refuses the switches with which the terms of kDisentangled are not defined.
absl::Status ValidateDisentangled(const EncoderConfig& config) {
  const char* other = nullptr;
  if (config.key_heads() != config.heads) other = "kv_heads";
  if (config.query_key_norm != QueryKeyNorm::kNone) other = "query_key_norm";
  if (config.positions == Positions::kRotary) other = "rotary positions";
  if (config.local_layers.any()) other = "local_layers";
  if (config.causal) other = "causal";
  if (other == nullptr) {
    return CheckWeightSize("score_bias", config.bias_buckets, config.hidden);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("score_bias is kDisentangled, it does not go with ", other));
}

absl::Status ValidateBias(const EncoderConfig& config) {
  const bool disentangled = config.score_bias == ScoreBias::kDisentangled;
  if (config.score_bias != ScoreBias::kBuckets && !disentangled) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"bias_buckets", config.bias_buckets, kMaxRows}}));
  // Each half has exact buckets, and then logarithmic ones up to the distance.
  const int64_t least = config.bias_buckets / 4 + (disentangled ? 2 : 1);
  if (config.bias_buckets % 4 == 0 && config.bias_max_distance >= least) {
    return disentangled ? ValidateDisentangled(config) : absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "bias_buckets is ", config.bias_buckets, " and bias_max_distance ", config.bias_max_distance,
      ": the first must be a multiple of 4, the second at least ", least));
}

// Of the tables that a back end computes from small weights or none (position_tables.h).
absl::Status CheckTables(const EncoderConfig& config) {
  if (config.positions == Positions::kRotary) {
    ATTENDANT_RETURN_IF_ERROR(CheckBounds(
        {{"max_positions x head_dim", config.max_positions * config.head_dim(), kMaxTableValues}}));
  }
  if (config.score_bias != ScoreBias::kAlibi && config.score_bias != ScoreBias::kBuckets) {
    return absl::OkStatus();
  }
  return CheckBounds(
      {{"heads x 2 max_positions", config.heads * 2 * config.max_positions, kMaxTableValues}});
}

absl::Status ValidatePositions(const EncoderConfig& config) {
  if (config.positions == Positions::kRotary) {
    if (config.head_dim() % 2 != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("head_dim is ", config.head_dim(), ", rotary positions need an even one"));
    }
    ATTENDANT_RETURN_IF_ERROR(CheckRotary("rotary", config.rotary, config.head_dim()));
    ATTENDANT_RETURN_IF_ERROR(CheckRotary("local_rotary", config.local_rotary, config.head_dim()));
  }
  if (config.positions == Positions::kRotary || config.score_bias != ScoreBias::kNone) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckBounds({{"max_positions", config.max_positions, kMaxComputedPositions}}));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckTables(config));
  return ValidateBias(config);
}

absl::Status CheckScale(const char* name, float scale, bool zero) {
  if (std::isfinite(scale) && (scale > 0 || (zero && scale == 0))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", scale, ", it must be finite and above 0"));
}

absl::Status ValidateExperts(const EncoderConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckBounds({{"experts", config.experts, kMaxExperts},
                   {"experts_per_token", config.experts_per_token, config.experts}}));
  ATTENDANT_RETURN_IF_ERROR(
      CheckWeightSize("ffn_up of experts", config.experts * config.ffn, config.hidden));
  if (!config.gated_ffn) return absl::OkStatus();
  return absl::InvalidArgumentError("gated_ffn is true, it does not go with expert_layers");
}

absl::Status ValidateLayers(const EncoderConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(CheckScale("query_scale", config.query_scale, true));
  ATTENDANT_RETURN_IF_ERROR(CheckScale("embedding_scale", config.embedding_scale, false));
  if (config.local_layers.any() && (config.window < 0 || config.window > kMaxRows)) {
    return absl::InvalidArgumentError(
        absl::StrCat("window is ", config.window, ", it must be from 0 to ", kMaxRows));
  }
  if (config.expert_layers.any()) ATTENDANT_RETURN_IF_ERROR(ValidateExperts(config));
  if (!config.first_attention_norm && config.norm_place != NormPlace::kPre) {
    return absl::InvalidArgumentError(
        "first_attention_norm is false, which needs norm_place to be kPre");
  }
  if (!config.second_attention_norm || config.norm_place == NormPlace::kPost) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "second_attention_norm is true, which needs norm_place to be kPost");
}

}  // namespace

float Rotary::Rate(int64_t pair, int64_t head_dim) const {
  if (!rates.empty()) return rates[static_cast<size_t>(pair)];
  const float exponent = static_cast<float>(2 * pair) / static_cast<float>(head_dim);
  const double wave = std::pow(static_cast<float>(base), static_cast<double>(exponent));
  const auto rate = static_cast<float>(frequency_scale * (1.0f / static_cast<float>(wave)));
  if (long_waves.factor == 1) return rate;
  const double turns = static_cast<double>(rate) *
                       static_cast<double>(long_waves.trained_positions) / (2 * std::numbers::pi);
  const double kept =
      std::clamp((turns - long_waves.low) / (long_waves.high - long_waves.low), 0.0, 1.0);
  return static_cast<float>(rate * (kept + (1 - kept) / long_waves.factor));
}

absl::Status Validate(const EncoderConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"layers", config.layers, kMaxLayers},
                                         {"heads", config.heads, kMaxWidth},
                                         {"hidden", config.hidden, kMaxWidth},
                                         {"ffn", config.ffn, kMaxWidth}}));
  ATTENDANT_RETURN_IF_ERROR(ValidateHeads(config));
  ATTENDANT_RETURN_IF_ERROR(CheckEpsilon(config.layer_norm_epsilon));
  ATTENDANT_RETURN_IF_ERROR(CheckEpsilon(config.final_epsilon()));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("fused qkv weight", config.qkv_width(), config.hidden));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("ffn_up", config.ffn_inputs(), config.hidden));
  ATTENDANT_RETURN_IF_ERROR(ValidatePositions(config));
  ATTENDANT_RETURN_IF_ERROR(ValidateLayers(config));
  return config.input == EncoderInput::kTokens ? ValidateEmbeddings(config) : absl::OkStatus();
}

absl::Status CheckComputed(absl::string_view backend, const EncoderConfig& computed,
                           const EncoderConfig& config) {
  const char* other = computed == config ? nullptr : "dimensions";
  for (const auto& [name, same] : std::initializer_list<std::pair<const char*, bool>>{
           {"activation", computed.activation == config.activation},
           {"input", computed.input == config.input},
           {"norm_place", computed.norm_place == config.norm_place},
           {"first_attention_norm", computed.first_attention_norm == config.first_attention_norm},
           {"second_attention_norm",
            computed.second_attention_norm == config.second_attention_norm},
           {"final_norm", computed.final_norm == config.final_norm},
           {"final_norm_epsilon", computed.final_epsilon() == config.final_epsilon()},
           {"biases", computed.biases == config.biases},
           {"norm_kind", computed.norm_kind == config.norm_kind},
           {"embedding_norm", computed.embedding_norm == config.embedding_norm},
           {"embedding_width", computed.embedding_width == config.embedding_width},
           {"head_width", computed.head_width == config.head_width},
           {"kv_heads", computed.kv_heads == config.kv_heads},
           {"query_key_norm", computed.query_key_norm == config.query_key_norm},
           {"causal", computed.causal == config.causal},
           {"unattended_tokens", computed.unattended_tokens == config.unattended_tokens},
           {"query_scale", computed.query_scale == config.query_scale},
           {"embedding_scale", computed.embedding_scale == config.embedding_scale},
           {"dropped_token", computed.dropped_token == config.dropped_token},
           {"gated_ffn", computed.gated_ffn == config.gated_ffn},
           {"experts", computed.experts == config.experts},
           {"experts_per_token", computed.experts_per_token == config.experts_per_token},
           {"expert_layers", computed.expert_layers == config.expert_layers},
           {"positions", computed.positions == config.positions},
           {"score_bias", computed.score_bias == config.score_bias},
           {"local_layers", computed.local_layers == config.local_layers}}) {
    if (!same) other = name;
  }
  if (other == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("the ", backend, " back end does not compute an encoder with this ", other));
}

}  // namespace attendant
