// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/smoothing_factors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "kernels/cpu/encoder/expert_choice.h"

namespace attendant::cpu {
namespace {

// 16 to 64 give the same accuracy.
constexpr size_t kTokens = 16;

// The values of kTokens tokens, channel by channel: a weight meets all of them at once.
class Samples {
 public:
  explicit Samples(size_t channels) : values_(channels * kTokens) {}

  size_t channels() const { return values_.size() / kTokens; }
  float* operator[](size_t channel) { return values_.data() + channel * kTokens; }
  const float* operator[](size_t channel) const { return values_.data() + channel * kTokens; }
  std::vector<float>& values() { return values_; }
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<float> values_;
};

// Attention averages values over tokens. So much of a value's distance to the mean is kept; how
// much is not critical: 0.2 to 1 end in the same accuracy.
constexpr float kAttendedDistance = 0.55f;

// W x + b.
Samples Linear(const LinearWeights& linear, const Samples& x) {
  Samples y(static_cast<size_t>(linear.weight.dim(0)));
  for (size_t i = 0; i < y.channels(); ++i) {
    const float* row = linear.weight.row(static_cast<int64_t>(i));
    float sums[kTokens];
    std::fill_n(sums, kTokens, BiasAt(linear.bias, static_cast<int64_t>(i)));
    for (size_t j = 0; j < x.channels(); ++j) {
      for (size_t token = 0; token < kTokens; ++token) sums[token] += row[j] * x[j][token];
    }
    std::copy_n(sums, kTokens, y[i]);
  }
  return y;
}

Samples Sum(Samples x, const Samples& branch) {
  for (size_t i = 0; i < x.values().size(); ++i) x.values()[i] += branch.values()[i];
  return x;
}

Samples Normalized(Samples x, const LayerNormWeights& norm, const EncoderConfig& config) {
  const auto channels = static_cast<float>(x.channels());
  float mean[kTokens] = {}, variance[kTokens] = {}, scale[kTokens];
  for (size_t i = 0; config.norm_kind == NormKind::kLayer && i < x.channels(); ++i) {
    for (size_t token = 0; token < kTokens; ++token) mean[token] += x[i][token] / channels;
  }
  for (size_t i = 0; i < x.channels(); ++i) {
    for (size_t token = 0; token < kTokens; ++token) {
      const float distance = x[i][token] - mean[token];
      variance[token] += distance * distance / channels;
    }
  }
  for (size_t token = 0; token < kTokens; ++token) {
    scale[token] = 1 / std::sqrt(variance[token] + config.layer_norm_epsilon);
  }
  for (size_t i = 0; i < x.channels(); ++i) {
    const float gamma = norm.gamma.data()[i], beta = BiasAt(norm.beta, static_cast<int64_t>(i));
    for (size_t token = 0; token < kTokens; ++token) {
      x[i][token] = (x[i][token] - mean[token]) * scale[token] * gamma + beta;
    }
  }
  return x;
}

// The two GELUs differ by less than matters here.
float Activate(Activation activation, float x) {
  if (activation == Activation::kRelu) return std::max(x, 0.0f);
  if (activation == Activation::kSilu) return x / (1 + std::exp(-x));
  return x / 2 * (1 + std::erf(x / std::sqrt(2.0f)));
}

Samples Activated(Activation activation, Samples x) {
  for (float& value : x.values()) value = Activate(activation, value);
  return x;
}

Samples Gated(const Samples& gate, Samples up) {
  for (size_t i = 0; i < up.values().size(); ++i) up.values()[i] *= gate.values()[i];
  return up;
}

// Row `token` of kTokens that lie at equal distances in a table.
const float* RowOf(TensorView<const float, 2> table, size_t token) {
  return table.row(table.dim(0) * static_cast<int64_t>(token) / static_cast<int64_t>(kTokens));
}

// Tokens from all of the vocabulary, at places from all of a sequence.
Samples Embeddings(const EncoderConfig& config, const EncoderWeights& weights) {
  Samples x(static_cast<size_t>(config.input_width()));
  for (size_t token = 0; token < kTokens; ++token) {
    const float* word = RowOf(weights.token_embedding, token);
    const bool learned = config.positions == Positions::kLearned;
    const float* position = learned ? RowOf(weights.position_embedding, token) : nullptr;
    for (size_t i = 0; i < x.channels(); ++i) {
      x[i][token] = word[i] * config.embedding_scale + weights.segment_embedding.row(0)[i] +
                    (learned ? position[i] : 0);
    }
  }
  if (config.embedding_norm) x = Normalized(std::move(x), weights.embedding_norm, config);
  return config.projects_embeddings() ? Linear(weights.embedding_projection, x) : x;
}

// The context of attention: a head of values for each head of queries.
Samples Context(const EncoderConfig& config, const Samples& values) {
  const auto head_dim = static_cast<size_t>(config.head_dim());
  const auto group = static_cast<size_t>(config.heads / config.key_heads());
  Samples context(static_cast<size_t>(config.context_width()));
  for (size_t i = 0; i < context.channels(); ++i) {
    const float* value = values[i / head_dim / group * head_dim + i % head_dim];
    float mean = 0;
    for (size_t token = 0; token < kTokens; ++token) mean += value[token] / kTokens;
    for (size_t token = 0; token < kTokens; ++token) {
      context[i][token] = mean + (value[token] - mean) * kAttendedDistance;
    }
  }
  return context;
}

Samples FeedForward(const EncoderConfig& config, const EncoderLayerWeights& layer,
                    const Samples& x) {
  const Samples up = Linear(layer.ffn_up, x);
  return Linear(layer.ffn_down,
                config.gated_ffn
                    ? Gated(Activated(config.activation, Linear(layer.ffn_gate, x)), up)
                    : Activated(config.activation, up));
}

// An expert's weight for each token: 0 for those that do not choose it.
Samples ExpertWeightsOf(const EncoderConfig& config, const EncoderLayerWeights& layer,
                        const Samples& x) {
  const Samples scores = Linear({.weight = layer.router, .bias = {}}, x);
  Samples weights(scores.channels());
  std::vector<float> of_token(scores.channels());
  std::vector<int32_t> chosen(static_cast<size_t>(config.experts_per_token));
  std::vector<float> chosen_weights(chosen.size());
  for (size_t token = 0; token < kTokens; ++token) {
    for (size_t i = 0; i < of_token.size(); ++i) of_token[i] = scores[i][token];
    ChooseExperts(of_token, chosen, chosen_weights);
    for (size_t i = 0; i < chosen.size(); ++i) {
      weights[static_cast<size_t>(chosen[i])][token] = chosen_weights[i];
    }
  }
  return weights;
}

// Every expert computes all tokens: there are few.
Samples MixExperts(const EncoderConfig& config, const EncoderLayerWeights& layer,
                   const Samples& x) {
  const Samples weights = ExpertWeightsOf(config, layer, x);
  Samples sum(x.channels());
  for (size_t i = 0; i < x.channels(); ++i) {
    std::fill_n(sum[i], kTokens, BiasAt(layer.experts_bias, static_cast<int64_t>(i)));
  }
  for (size_t expert = 0; expert < layer.experts.size(); ++expert) {
    const Samples inner =
        Activated(config.activation, Linear({.weight = layer.experts[expert].up, .bias = {}}, x));
    for (size_t i = 0; i < inner.channels(); ++i) {
      const float* row = layer.experts[expert].down.row(static_cast<int64_t>(i));
      float weighted[kTokens];
      for (size_t token = 0; token < kTokens; ++token) {
        weighted[token] = inner[i][token] * weights[expert][token];
      }
      for (size_t j = 0; j < sum.channels(); ++j) {
        for (size_t token = 0; token < kTokens; ++token) sum[j][token] += row[j] * weighted[token];
      }
    }
  }
  return sum;
}

// The square root of each channel's root mean square, inverted: as much imbalance stays as moves.
std::vector<float> SmoothingFactors(const Samples& x) {
  std::vector<float> factors;
  for (size_t i = 0; i < x.channels(); ++i) {
    float square = 0;
    for (size_t token = 0; token < kTokens; ++token) square += x[i][token] * x[i][token] / kTokens;
    // Weights that overflowed to infinity predict nothing.
    factors.push_back(std::isfinite(square) ? std::pow(std::max(square, 1e-12f), -0.25f) : 1);
  }
  return factors;
}

// Adds the logarithms of some factors.
void AddLogs(const std::vector<float>& factors, std::vector<float>& sums) {
  sums.resize(factors.size());
  for (size_t i = 0; i < factors.size(); ++i) sums[i] += std::log(factors[i]);
}

}  // namespace

std::vector<LayerSmoothing> PredictSmoothingFactors(const EncoderConfig& config,
                                                    const EncoderWeights& weights) {
  const bool pre = config.norm_place != NormPlace::kPost;
  Samples states = Embeddings(config, weights);
  const auto norm_if = [&](bool wanted, const Samples& x, const LayerNormWeights& norm) {
    return wanted ? Normalized(x, norm, config) : x;
  };
  const auto add = [&](const Samples& branch, const LayerNormWeights& norm,
                       const LayerNormWeights& output_norm) {
    states = Sum(std::move(states), norm_if(config.norms_outputs(), branch, output_norm));
    states = norm_if(!pre, states, norm);
  };
  std::vector<LayerSmoothing> layers;
  for (const EncoderLayerWeights& layer : weights.layers) {
    LayerSmoothing& of_layer = layers.emplace_back();
    const bool normed = pre && (layers.size() > 1 || config.first_attention_norm);
    Samples x = norm_if(normed, states, layer.attention_norm);
    of_layer.qkv = SmoothingFactors(x);
    Samples attended = Linear(layer.attention_output, Context(config, Linear(layer.value, x)));
    if (config.second_attention_norm) {
      attended = Normalized(Sum(states, attended), layer.attention_output_norm, config);
    }
    add(attended, layer.attention_norm, layer.attention_output_norm);
    x = norm_if(pre, states, layer.ffn_norm);
    of_layer.ffn_up = SmoothingFactors(x);
    const bool experts = config.has_experts(std::ssize(layers) - 1);
    add(experts ? MixExperts(config, layer, x) : FeedForward(config, layer, x), layer.ffn_norm,
        layer.ffn_output_norm);
  }
  return layers;
}

std::vector<LayerSmoothing> SharedFactors(const std::vector<LayerSmoothing>& of_layers,
                                          const std::vector<size_t>& set_of_layer) {
  std::vector<LayerSmoothing> of_sets;
  std::vector<float> layers;  // of each set
  for (size_t i = 0; i < of_layers.size(); ++i) {
    const size_t set = set_of_layer[i];
    if (set == of_sets.size()) {
      of_sets.emplace_back();
      layers.push_back(0);
    }
    AddLogs(of_layers[i].qkv, of_sets[set].qkv);
    AddLogs(of_layers[i].ffn_up, of_sets[set].ffn_up);
    ++layers[set];
  }
  for (size_t set = 0; set < of_sets.size(); ++set) {
    for (auto* const logs : {&of_sets[set].qkv, &of_sets[set].ffn_up}) {
      for (float& value : *logs) value = std::exp(value / layers[set]);
    }
  }
  return of_sets;
}

}  // namespace attendant::cpu
