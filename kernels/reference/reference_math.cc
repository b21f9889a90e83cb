// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/reference_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace attendant::reference {
namespace {

double Gelu(double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }

double GeluTanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double Activate(double x, Activation activation) {
  switch (activation) {
    case Activation::kGeluErf:
      return Gelu(x);
    case Activation::kGeluTanh:
      return GeluTanh(x);
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

}  // namespace

void Softmax(std::vector<double>& scores) {
  double largest = std::numeric_limits<double>::lowest();
  for (double score : scores) largest = std::max(largest, score);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum == 0 ? 1 : sum;
}

Matrix Linear(const Matrix& x, const LinearWeights& linear) {
  Matrix y(x.rows, linear.weight.dim(0));
  for (int64_t row = 0; row < y.rows; ++row) {
    for (int64_t column = 0; column < y.columns; ++column) {
      double sum = BiasAt(linear.bias, column);
      const float* weight = linear.weight.row(column);
      for (int64_t i = 0; i < x.columns; ++i) sum += static_cast<double>(x.at(row, i)) * weight[i];
      y.at(row, column) = static_cast<float>(sum);
    }
  }
  return y;
}

Matrix Add(const Matrix& a, const Matrix& b) {
  Matrix sum(a.rows, a.columns);
  for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] = a.values[i] + b.values[i];
  return sum;
}

Matrix Multiply(const Matrix& a, const Matrix& b) {
  Matrix product(a.rows, a.columns);
  for (size_t i = 0; i < product.values.size(); ++i) product.values[i] = a.values[i] * b.values[i];
  return product;
}

Matrix Normalize(const Matrix& x, const LayerNormWeights& norm, NormKind kind, float epsilon) {
  Matrix y(x.rows, x.columns);
  const auto count = static_cast<double>(x.columns);
  for (int64_t row = 0; row < x.rows; ++row) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < x.columns && kind == NormKind::kLayer; ++i)
      mean += x.at(row, i) / count;
    for (int64_t i = 0; i < x.columns; ++i) {
      variance += (x.at(row, i) - mean) * (x.at(row, i) - mean) / count;
    }
    for (int64_t i = 0; i < x.columns; ++i) {
      const double normal = (x.at(row, i) - mean) / std::sqrt(variance + epsilon);
      y.at(row, i) = static_cast<float>(normal * norm.gamma.data()[i] + BiasAt(norm.beta, i));
    }
  }
  return y;
}

Matrix NormalizeHeads(const Matrix& x, int64_t heads, const LayerNormWeights& norm, NormKind kind,
                      float epsilon) {
  Matrix rows(x.rows * heads, x.columns / heads);  // a head each
  rows.values = x.values;
  Matrix y(x.rows, x.columns);
  y.values = Normalize(rows, norm, kind, epsilon).values;
  return y;
}

Matrix Activate(const Matrix& x, Activation activation) {
  Matrix y(x.rows, x.columns);
  for (size_t i = 0; i < y.values.size(); ++i) {
    y.values[i] = static_cast<float>(Activate(static_cast<double>(x.values[i]), activation));
  }
  return y;
}

Matrix Rotate(const Matrix& x, int64_t heads, const Rotary& rotary,
              std::span<const int32_t> positions) {
  Matrix y(x.rows, x.columns);
  const int64_t head_dim = x.columns / heads, pairs = head_dim / 2;
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t column = 0; column < x.columns; ++column) {
      const int64_t d = column % head_dim, pair = d % pairs;
      // In f32, as PyTorch has rates and angles.
      const float rate = rotary.Rate(pair, head_dim);
      const float angle = static_cast<float>(positions[static_cast<size_t>(row)]) * rate;
      const double sine = std::sin(static_cast<double>(angle));
      const double turned =
          d < pairs ? -sine * x.at(row, column + pairs) : sine * x.at(row, column - pairs);
      y.at(row, column) =
          static_cast<float>(std::cos(static_cast<double>(angle)) * x.at(row, column) + turned);
    }
  }
  return y;
}

double DotOfHead(const Matrix& x, int64_t x_row, const Matrix& y, int64_t y_row, int64_t head_dim,
                 int64_t head) {
  const int64_t x_begin = head * head_dim, y_begin = head / (x.columns / y.columns) * head_dim;
  double dot = 0;
  for (int64_t d = 0; d < head_dim; ++d) {
    dot += static_cast<double>(x.at(x_row, x_begin + d)) * y.at(y_row, y_begin + d);
  }
  return dot;
}

Matrix AttentionWeights(const Matrix& q, const Matrix& k, int64_t head, const Scores& scores) {
  Matrix out(q.rows, k.rows);
  const int64_t head_dim = q.columns / scores.heads;
  std::vector<double> row(static_cast<size_t>(k.rows));
  for (int64_t query = 0; query < q.rows; ++query) {
    for (int64_t key = 0; key < k.rows; ++key) {
      row[static_cast<size_t>(key)] = DotOfHead(q, query, k, key, head_dim, head) * scores.scale +
                                      scores.offset(head, query, key);
    }
    Softmax(row);
    for (int64_t key = 0; key < k.rows; ++key) {
      out.at(query, key) = static_cast<float>(row[static_cast<size_t>(key)]);
    }
  }
  return out;
}

Matrix SelfAttention(const Matrix& q, const Matrix& k, const Matrix& v, const Scores& scores) {
  Matrix out(q.rows, q.columns);
  const int64_t head_dim = q.columns / scores.heads;
  for (int64_t column = 0; column < q.columns; column += head_dim) {
    const Matrix weights = AttentionWeights(q, k, column / head_dim, scores);
    const int64_t value_column = column / head_dim / (q.columns / v.columns) * head_dim;
    for (int64_t query = 0; query < q.rows; ++query) {
      for (int64_t d = 0; d < head_dim; ++d) {
        double sum = 0;
        for (int64_t key = 0; key < k.rows; ++key) {
          sum += static_cast<double>(weights.at(query, key)) * v.at(key, value_column + d);
        }
        out.at(query, column + d) = static_cast<float>(sum);
      }
    }
  }
  return out;
}

namespace {

// The experts of a row: the places of the largest weights, largest first; of equal ones the first.
std::vector<size_t> ChooseExperts(const std::vector<double>& weights, int64_t count) {
  std::vector<size_t> experts(weights.size());
  std::iota(experts.begin(), experts.end(), size_t{0});
  std::stable_sort(experts.begin(), experts.end(),
                   [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  experts.resize(static_cast<size_t>(count));
  return experts;
}

Matrix Feed(const EncoderConfig& config, const ExpertWeights& expert, const Matrix& x) {
  const Matrix inner = Activate(Linear(x, {.weight = expert.up, .bias = {}}), config.activation);
  Matrix y(x.rows, config.hidden);
  for (int64_t row = 0; row < y.rows; ++row) {
    for (int64_t column = 0; column < y.columns; ++column) {
      double sum = 0;
      for (int64_t i = 0; i < config.ffn; ++i) {
        sum += static_cast<double>(inner.at(row, i)) * expert.down.row(i)[column];
      }
      y.at(row, column) = static_cast<float>(sum);
    }
  }
  return y;
}

Matrix FeedForward(const EncoderConfig& config, const EncoderLayerWeights& layer, const Matrix& x) {
  Matrix inner = Linear(x, layer.ffn_up);
  inner = config.gated_ffn ? Multiply(Activate(Linear(x, layer.ffn_gate), config.activation), inner)
                           : Activate(inner, config.activation);
  return Linear(inner, layer.ffn_down);
}

}  // namespace

Matrix MixExperts(const EncoderConfig& config, const EncoderLayerWeights& layer, const Matrix& x) {
  const Matrix scores = Linear(x, {.weight = layer.router, .bias = {}});
  Matrix y(x.rows, x.columns);
  for (int64_t row = 0; row < x.rows; ++row) {
    Matrix of_row(1, x.columns);
    std::copy_n(&x.values[static_cast<size_t>(row * x.columns)], x.columns, of_row.values.begin());
    std::vector<double> weights;
    for (int64_t i = 0; i < config.experts; ++i) weights.push_back(scores.at(row, i));
    Softmax(weights);
    std::vector<double> sum;
    for (int64_t i = 0; i < x.columns; ++i) sum.push_back(BiasAt(layer.experts_bias, i));
    for (const size_t expert : ChooseExperts(weights, config.experts_per_token)) {
      const Matrix fed = Feed(config, layer.experts[expert], of_row);
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] += weights[expert] * static_cast<double>(fed.values[i]);
      }
    }
    for (int64_t i = 0; i < x.columns; ++i) {
      y.at(row, i) = static_cast<float>(sum[static_cast<size_t>(i)]);
    }
  }
  return y;
}

Matrix RunLayers(const EncoderConfig& config, const EncoderWeights& weights, Matrix x,
                 Attention attention, StatesSeen seen) {
  const bool pre = config.norm_place != NormPlace::kPost, both = config.norms_outputs();
  const auto norm_if = [&](bool wanted, const Matrix& y, const LayerNormWeights& norm) {
    return wanted ? Normalize(y, norm, config.norm_kind, config.layer_norm_epsilon) : y;
  };
  int64_t index = 0;
  for (const EncoderLayerWeights& layer : weights.layers) {
    seen(index, x);
    const bool experts = config.has_experts(index);
    Matrix y = norm_if(pre && (index > 0 || config.first_attention_norm), x, layer.attention_norm);
    y = attention(index++, Linear(y, layer.query), Linear(y, layer.key), Linear(y, layer.value));
    y = Linear(y, layer.attention_output);
    if (config.second_attention_norm) y = Add(x, y);
    y = norm_if(config.norms_attention_output(), y, layer.attention_output_norm);
    x = norm_if(!pre, Add(x, y), layer.attention_norm);
    y = norm_if(pre, x, layer.ffn_norm);
    y = experts ? MixExperts(config, layer, y) : FeedForward(config, layer, y);
    y = norm_if(both, y, layer.ffn_output_norm);
    x = norm_if(!pre, Add(x, y), layer.ffn_norm);
  }
  if (config.final_norm) {
    x = Normalize(x, weights.final_norm, config.norm_kind, config.final_epsilon());
  }
  seen(index, x);
  return x;
}

}  // namespace attendant::reference
