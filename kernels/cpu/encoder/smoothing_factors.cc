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

Moments LayerNorm(Moments x, const LayerNormWeights& norm) {
  const auto channels = static_cast<float>(x.size());
  float center = 0, variance = 0;
  for (float mean : x.mean) center += mean / channels;
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
  const bool pre = config.norm_place == NormPlace::kPre;
  Moments states(static_cast<size_t>(config.hidden));
  for (size_t i = 0; i < states.size(); ++i) {
    const float gamma = weights.embedding_norm.gamma.data()[i];
    states.mean[i] = BiasAt(weights.embedding_norm.beta, static_cast<int64_t>(i));
    states.variance[i] = gamma * gamma;
  }
  const auto add = [&](const LinearWeights& linear, const Moments& x,
                       const LayerNormWeights& norm) {
    states = Sum(std::move(states), Linear(linear, x));
    if (!pre) states = LayerNorm(std::move(states), norm);
  };
  std::vector<LayerSmoothing> layers;
  for (const EncoderLayerWeights& layer : weights.layers) {
    LayerSmoothing& of_layer = layers.emplace_back();
    const bool normed = pre && (layers.size() > 1 || config.first_attention_norm);
    Moments x = normed ? LayerNorm(states, layer.attention_norm) : states;
    of_layer.qkv = SmoothingFactors(x);
    Moments context = Linear(layer.value, x);
    for (float& variance : context.variance) variance *= kAttendedVariance;
    add(layer.attention_output, context, layer.attention_norm);
    x = pre ? LayerNorm(states, layer.ffn_norm) : states;
    of_layer.ffn_up = SmoothingFactors(x);
    const Moments up = Linear(layer.ffn_up, x);
    add(layer.ffn_down,
        config.gated_ffn ? Gated(Activated(config.activation, Linear(layer.ffn_gate, x)), up)
                         : Activated(config.activation, up),
        layer.ffn_norm);
  }
  return layers;
}

}  // namespace attendant::cpu
