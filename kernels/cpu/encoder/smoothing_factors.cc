// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/smoothing_factors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace attendant::cpu {
namespace {

// Of every channel, over tokens.
struct Moments {
  explicit Moments(size_t channels) : mean(channels), variance(channels) {}
  size_t size() const { return mean.size(); }

  std::vector<float> mean, variance;
};

// Attention averages values over tokens, which takes most of their variance; how much is not
// critical: 0.1 to 1 end in the same accuracy.
constexpr float kAttendedVariance = 0.3f;

// The mean of f(x) for normal x, by five-point Gauss-Hermite quadrature.
struct Node {
  float at, weight;
};
constexpr Node kNodes[] = {{0.0f, 0.53333333f},
                           {1.3556262f, 0.22207592f},
                           {-1.3556262f, 0.22207592f},
                           {2.8569700f, 0.01125741f},
                           {-2.8569700f, 0.01125741f}};

// Of W x + b, for independent channels of x.
Moments Linear(const LinearWeights& linear, const Moments& x) {
  Moments y(static_cast<size_t>(linear.weight.dim(0)));
  for (size_t i = 0; i < y.size(); ++i) {
    const float* row = linear.weight.row(static_cast<int64_t>(i));
    float mean = BiasAt(linear.bias, static_cast<int64_t>(i)), variance = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      mean += row[j] * x.mean[j];
      variance += row[j] * row[j] * x.variance[j];
    }
    y.mean[i] = mean;
    y.variance[i] = variance;
  }
  return y;
}

Moments Sum(Moments x, const Moments& branch) {
  for (size_t i = 0; i < x.size(); ++i) {
    x.mean[i] += branch.mean[i];
    x.variance[i] += branch.variance[i];
  }
  return x;
}

Moments Normalized(Moments x, const LayerNormWeights& norm, NormKind kind) {
  const auto channels = static_cast<float>(x.size());
  float center = 0, variance = 0;
  for (float mean : x.mean) center += kind == NormKind::kLayer ? mean / channels : 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const float distance = x.mean[i] - center;
    variance += (distance * distance + x.variance[i]) / channels;
  }
  const float scale = 1 / std::sqrt(std::max(variance, 1e-12f));
  for (size_t i = 0; i < x.size(); ++i) {
    const float gamma = norm.gamma.data()[i] * scale;
    x.mean[i] = (x.mean[i] - center) * gamma + BiasAt(norm.beta, static_cast<int64_t>(i));
    x.variance[i] *= gamma * gamma;
  }
  return x;
}

// The two GELUs differ by less than matters here.
float Activate(Activation activation, float x) {
  if (activation == Activation::kRelu) return std::max(x, 0.0f);
  if (activation == Activation::kSilu) return x / (1 + std::exp(-x));
  return x / 2 * (1 + std::erf(x / std::sqrt(2.0f)));
}

Moments Activated(Activation activation, const Moments& x) {
  Moments y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    float mean = 0, square = 0;
    for (const Node& node : kNodes) {
      const float value = Activate(activation, x.mean[i] + std::sqrt(x.variance[i]) * node.at);
      mean += node.weight * value;
      square += node.weight * value * value;
    }
    y.mean[i] = mean;
    y.variance[i] = std::max(square - mean * mean, 0.0f);
  }
  return y;
}

// Of the product, for independent channels.
Moments Gated(const Moments& gate, Moments up) {
  for (size_t i = 0; i < up.size(); ++i) {
    const float square = up.mean[i] * up.mean[i] + up.variance[i];
    const float gate_square = gate.mean[i] * gate.mean[i] + gate.variance[i];
    up.mean[i] *= gate.mean[i];
    up.variance[i] = std::max(square * gate_square - up.mean[i] * up.mean[i], 0.0f);
  }
  return up;
}

// Of the embeddings of some tokens, where no norm follows.
Moments Embeddings(TensorView<const float, 2> table, float scale) {
  constexpr int64_t kRows = 256;
  Moments x(static_cast<size_t>(table.dim(1)));
  const int64_t step = (table.dim(0) + kRows - 1) / kRows;
  const auto rows = static_cast<float>((table.dim(0) + step - 1) / step);
  for (int64_t row = 0; row < table.dim(0); row += step) {
    for (size_t i = 0; i < x.size(); ++i) {
      const float value = table.row(row)[i] * scale;
      x.mean[i] += value / rows;
      x.variance[i] += value * value / rows;
    }
  }
  for (size_t i = 0; i < x.size(); ++i) {
    x.variance[i] = std::max(x.variance[i] - x.mean[i] * x.mean[i], 0.0f);
  }
  return x;
}

// What a norm writes.
Moments FromNorm(const LayerNormWeights& norm) {
  Moments x(static_cast<size_t>(norm.gamma.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const float gamma = norm.gamma.data()[i];
    x.mean[i] = BiasAt(norm.beta, static_cast<int64_t>(i));
    x.variance[i] = gamma * gamma;
  }
  return x;
}

// The context of attention: a head of values for each head of queries.
Moments Context(const EncoderConfig& config, const Moments& values) {
  const auto head_dim = static_cast<size_t>(config.head_dim());
  const auto group = static_cast<size_t>(config.heads / config.key_heads());
  Moments context(static_cast<size_t>(config.context_width()));
  for (size_t i = 0; i < context.size(); ++i) {
    const size_t from = i / head_dim / group * head_dim + i % head_dim;
    context.mean[i] = values.mean[from];
    context.variance[i] = values.variance[from] * kAttendedVariance;
  }
  return context;
}

// The square root of each channel's expected size, inverted: as much imbalance stays as moves.
std::vector<float> SmoothingFactors(const Moments& x) {
  std::vector<float> factors;
  for (size_t i = 0; i < x.size(); ++i) {
    const float square = x.mean[i] * x.mean[i] + x.variance[i];
    // Weights that overflowed to infinity predict nothing.
    factors.push_back(std::isfinite(square) ? std::pow(std::max(square, 1e-12f), -0.25f) : 1);
  }
  return factors;
}

}  // namespace

std::vector<LayerSmoothing> PredictSmoothingFactors(const EncoderConfig& config,
                                                    const EncoderWeights& weights) {
  const bool pre = config.norm_place != NormPlace::kPost;
  Moments states = config.embedding_norm
                       ? FromNorm(weights.embedding_norm)
                       : Embeddings(weights.token_embedding, config.embedding_scale);
  const auto norm_if = [&](bool wanted, const Moments& x, const LayerNormWeights& norm) {
    return wanted ? Normalized(x, norm, config.norm_kind) : x;
  };
  const auto add = [&](const LinearWeights& linear, const Moments& x, const LayerNormWeights& norm,
                       const LayerNormWeights& output_norm) {
    states =
        Sum(std::move(states), norm_if(config.norms_outputs(), Linear(linear, x), output_norm));
    states = norm_if(!pre, states, norm);
  };
  std::vector<LayerSmoothing> layers;
  for (const EncoderLayerWeights& layer : weights.layers) {
    LayerSmoothing& of_layer = layers.emplace_back();
    const bool normed = pre && (layers.size() > 1 || config.first_attention_norm);
    Moments x = norm_if(normed, states, layer.attention_norm);
    of_layer.qkv = SmoothingFactors(x);
    add(layer.attention_output, Context(config, Linear(layer.value, x)), layer.attention_norm,
        layer.attention_output_norm);
    x = norm_if(pre, states, layer.ffn_norm);
    of_layer.ffn_up = SmoothingFactors(x);
    const Moments up = Linear(layer.ffn_up, x);
    add(layer.ffn_down,
        config.gated_ffn ? Gated(Activated(config.activation, Linear(layer.ffn_gate, x)), up)
                         : Activated(config.activation, up),
        layer.ffn_norm, layer.ffn_output_norm);
  }
  return layers;
}

}  // namespace attendant::cpu
