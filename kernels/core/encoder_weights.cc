// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/encoder_weights.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/weight_checks.h"

namespace attendant {
namespace {

void CheckExperts(const EncoderConfig& config, const EncoderLayerWeights& layer,
                  const std::string& name, ShapeChecker& checker) {
  checker.Check<2>(name + ".router", layer.router, {config.experts, config.hidden});
  for (int64_t i = 0; i < config.experts; ++i) {
    const auto index = static_cast<size_t>(i);
    const ExpertWeights expert =
        index < layer.experts.size() ? layer.experts[index] : ExpertWeights();
    const std::string prefix = absl::StrCat(name, ".expert ", i);
    checker.Check<2>(prefix + ".up", expert.up, {config.ffn, config.hidden});
    checker.Check<2>(prefix + ".down", expert.down, {config.ffn, config.hidden});
  }
  if (layer.experts_bias.empty()) return;
  checker.Check<1>(name + ".experts_bias", layer.experts_bias, {config.hidden});
}

void CheckFfn(const EncoderConfig& config, const EncoderLayerWeights& layer,
              const std::string& name, ShapeChecker& checker) {
  if (config.gated_ffn) {
    checker.Check(name + ".ffn_gate", layer.ffn_gate, config.ffn, config.hidden);
  }
  checker.Check(name + ".ffn_up", layer.ffn_up, config.ffn, config.hidden);
  checker.Check(name + ".ffn_down", layer.ffn_down, config.hidden, config.ffn);
}

void CheckLayer(const EncoderConfig& config, const EncoderLayerWeights& layer,
                const std::string& name, bool attention_norm, ShapeChecker& checker) {
  const int64_t hidden = config.hidden, context = config.context_width();
  checker.Check(name + ".query", layer.query, context, hidden);
  checker.Check(name + ".key", layer.key, config.key_width(), hidden);
  checker.Check(name + ".value", layer.value, config.key_width(), hidden);
  checker.Check(name + ".attention_output", layer.attention_output, hidden, context);
  if (config.query_key_norm == QueryKeyNorm::kHead) {
    checker.Check<1>(name + ".query_norm.gamma", layer.query_norm.gamma, {config.head_dim()});
    checker.Check<1>(name + ".key_norm.gamma", layer.key_norm.gamma, {config.head_dim()});
  } else if (config.query_key_norm == QueryKeyNorm::kWhole) {
    checker.Check(name + ".query_norm", layer.query_norm, context);
    checker.Check(name + ".key_norm", layer.key_norm, config.key_width());
  }
  if (attention_norm) {
    checker.Check(name + ".attention_norm", layer.attention_norm, config.hidden);
  }
  checker.Check(name + ".ffn_norm", layer.ffn_norm, config.hidden);
  if (config.norms_attention_output()) {
    checker.Check(name + ".attention_output_norm", layer.attention_output_norm, config.hidden);
  }
  if (config.norms_outputs()) {
    checker.Check(name + ".ffn_output_norm", layer.ffn_output_norm, config.hidden);
  }
}

template <typename Part>
using Parts = std::initializer_list<Part EncoderLayerWeights::*>;

}  // namespace

bool SameTensors(const EncoderLayerWeights& a, const EncoderLayerWeights& b) {
  using Layer = EncoderLayerWeights;
  const Parts<LinearWeights> linears = {
      &Layer::query,    &Layer::key,    &Layer::value,   &Layer::attention_output,
      &Layer::ffn_gate, &Layer::ffn_up, &Layer::ffn_down};
  const Parts<LayerNormWeights> norms = {&Layer::attention_norm, &Layer::attention_output_norm,
                                         &Layer::query_norm,     &Layer::key_norm,
                                         &Layer::ffn_norm,       &Layer::ffn_output_norm};
  const bool same_experts =
      a.router.data() == b.router.data() && a.experts_bias.data() == b.experts_bias.data() &&
      std::equal(a.experts.begin(), a.experts.end(), b.experts.begin(), b.experts.end(),
                 [](const ExpertWeights& one, const ExpertWeights& other) {
                   return one.up.data() == other.up.data() && one.down.data() == other.down.data();
                 });
  return same_experts &&
         std::all_of(linears.begin(), linears.end(),
                     [&](auto part) {
                       return (a.*part).weight.data() == (b.*part).weight.data() &&
                              (a.*part).bias.data() == (b.*part).bias.data();
                     }) &&
         std::all_of(norms.begin(), norms.end(), [&](auto part) {
           return (a.*part).gamma.data() == (b.*part).gamma.data() &&
                  (a.*part).beta.data() == (b.*part).beta.data();
         });
}

absl::Status ValidateWeights(const EncoderConfig& config, const EncoderWeights& weights) {
  ATTENDANT_RETURN_IF_ERROR(Validate(config));
  ATTENDANT_RETURN_IF_ERROR(CheckLayerCount(weights.layers.size(), config.layers));
  ShapeChecker checker(config.biases);
  if (config.input == EncoderInput::kTokens) {
    const int64_t width = config.input_width();
    checker.Check<2>("token_embedding", weights.token_embedding, {config.vocab, width});
    if (config.positions == Positions::kLearned) {
      checker.Check<2>("position_embedding", weights.position_embedding,
                       {config.max_positions, width});
    }
    checker.Check<2>("segment_embedding", weights.segment_embedding, {config.segment_types, width});
    if (config.embedding_norm) checker.Check("embedding_norm", weights.embedding_norm, width);
    if (config.projects_embeddings()) {
      checker.Check("embedding_projection", weights.embedding_projection, config.hidden, width);
    }
  }
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    CheckLayer(config, weights.layers[i], absl::StrCat("layer ", i),
               i > 0 || config.first_attention_norm, checker);
    const bool experts = config.has_experts(static_cast<int64_t>(i));
    (experts ? CheckExperts : CheckFfn)(config, weights.layers[i], absl::StrCat("layer ", i),
                                        checker);
  }
  if (config.score_bias == ScoreBias::kBuckets) {
    checker.Check<2>("score_bias", weights.score_bias, {config.bias_buckets, config.heads});
  } else if (config.score_bias == ScoreBias::kDisentangled) {
    checker.Check<2>("score_bias", weights.score_bias, {config.bias_buckets, config.hidden});
  }
  if (config.final_norm) checker.Check("final_norm", weights.final_norm, config.hidden);
  return checker.status();
}

}  // namespace attendant
