// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/reference/reference_module.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/attention/reference/reference.h"
#include "kernels/attention/values.h"

namespace attendant::attention::reference {
namespace {

// A row for each token.
struct Matrix {
  Matrix(int64_t num_rows, int64_t num_columns)
      : columns(num_columns), values(static_cast<size_t>(num_rows * num_columns)) {}
  int64_t rows() const { return static_cast<int64_t>(values.size()) / columns; }
  float& at(int64_t row, int64_t column) {
    return values[static_cast<size_t>(row * columns + column)];
  }
  float at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(values.data()); }

  int64_t columns;
  std::vector<float> values;
};

// Calls body(row, sequence, token) for every token of all sequences.
template <typename Body>
void ForEachToken(const Sequences& sequences, Body body) {
  for (int64_t sequence = 0; sequence < sequences.batch(); ++sequence) {
    for (int64_t token = 0; token < sequences.len(sequence); ++token) {
      body(sequences.start(sequence) + token, sequence, token);
    }
  }
}

Matrix Read(const InputRows& rows, const Sequences& sequences, DType dtype) {
  Matrix x(sequences.tokens(), rows.dim);
  ForEachToken(sequences, [&](int64_t row, int64_t sequence, int64_t token) {
    const std::byte* from = rows.at(sequences, dtype, sequence, 0, token);
    for (int64_t j = 0; j < x.columns; ++j) x.at(row, j) = ReadValue(from, dtype, j);
  });
  return x;
}

void Write(const Matrix& x, const Call& call, const OutputRows& rows) {
  ForEachToken(call.queries, [&](int64_t row, int64_t sequence, int64_t token) {
    std::byte* to = rows.at(call.queries, call.dtype, sequence, 0, token);
    for (int64_t j = 0; j < x.columns; ++j) WriteValue(to, call.dtype, j, x.at(row, j));
  });
}

// y = x weight^T + bias
Matrix Linear(const Matrix& x, const LinearWeights& linear) {
  Matrix y(x.rows(), linear.weight.dim(0));
  for (int64_t i = 0; i < y.rows(); ++i) {
    for (int64_t j = 0; j < y.columns; ++j) {
      double sum = linear.bias.empty() ? 0 : static_cast<double>(linear.bias.data()[j]);
      const float* weight = linear.weight.row(j);
      for (int64_t c = 0; c < x.columns; ++c) {
        sum += static_cast<double>(x.at(i, c)) * static_cast<double>(weight[c]);
      }
      y.at(i, j) = static_cast<float>(sum);
    }
  }
  return y;
}

// The attention of all heads of rows that are projected already, and the output projection.
Matrix Attend(const ModuleConfig& config, const MultiHeadWeights& weights, const Call& call,
              const Matrix& query, const Matrix& key, const Matrix& value,
              float* attention_weights) {
  const Matrix q = Linear(query, weights.query), k = Linear(key, weights.key);
  Matrix v = Linear(value, weights.value), context(query.rows(), config.hidden);
  const int64_t head_dim = config.head_dim();
  Call heads = call;  // of which the masks, the lengths and the values are read
  heads.dtype = DType::kF32;
  heads.query.heads = config.heads;
  heads.value = InputRows::TokensFirst(v.bytes(), config.heads, head_dim, call.keys.seq());
  if (attention_weights == nullptr) heads.need_weights = WeightsWanted::kNone;
  const double scale = call.scale.has_value() ? static_cast<double>(*call.scale)
                                              : 1 / std::sqrt(static_cast<double>(head_dim));
  const auto score = [&](int64_t sequence, int64_t head, int64_t i, int64_t j) {
    const int64_t query_row = call.queries.start(sequence) + i;
    const int64_t key_row = call.keys.start(sequence) + j;
    double dot = 0;
    for (int64_t c = head * head_dim; c < (head + 1) * head_dim; ++c) {
      dot += static_cast<double>(q.at(query_row, c)) * static_cast<double>(k.at(key_row, c));
    }
    return dot * scale;
  };
  SoftmaxAttention(heads, score,
                   {.out = OutputRows::TokensFirst(context.bytes(), config.heads, config.head_dim(),
                                                   call.queries.seq()),
                    .attention_weights = attention_weights});
  return Linear(context, weights.output);
}

// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row
Matrix LayerNorm(const Matrix& x, const LayerNormWeights& norm, double epsilon) {
  Matrix y(x.rows(), x.columns);
  const auto count = static_cast<double>(x.columns);
  for (int64_t i = 0; i < x.rows(); ++i) {
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < x.columns; ++j) mean += static_cast<double>(x.at(i, j)) / count;
    for (int64_t j = 0; j < x.columns; ++j) {
      variance += std::pow(static_cast<double>(x.at(i, j)) - mean, 2) / count;
    }
    for (int64_t j = 0; j < x.columns; ++j) {
      const double normal =
          (static_cast<double>(x.at(i, j)) - mean) / std::sqrt(variance + epsilon);
      const double beta = norm.beta.empty() ? 0 : static_cast<double>(norm.beta.data()[j]);
      y.at(i, j) = static_cast<float>(normal * static_cast<double>(norm.gamma.data()[j]) + beta);
    }
  }
  return y;
}

void Activate(Activation activation, Matrix& x) {
  for (float& value : x.values) {
    const auto v = static_cast<double>(value);
    const double gelu_tanh =
        v / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
    const double gelu = v / 2 * (1 + std::erf(v / std::numbers::sqrt2));
    value = static_cast<float>(activation == Activation::kRelu      ? std::max(v, 0.0)
                               : activation == Activation::kGeluErf ? gelu
                                                                    : gelu_tanh);
  }
}

Matrix FeedForward(const ModuleConfig& config, const TransformerLayerWeights& layer,
                   const Matrix& x) {
  Matrix inner = Linear(x, layer.ffn_up);
  Activate(config.activation, inner);
  return Linear(inner, layer.ffn_down);
}

void Add(const Matrix& branch, Matrix& x) {
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += branch.values[i];
}

}  // namespace

void MultiHeadAttention(const ModuleConfig& config, const MultiHeadWeights& weights,
                        const Call& call, const Outputs& outputs) {
  Write(Attend(config, weights, call, Read(call.query, call.queries, call.dtype),
               Read(call.key, call.keys, call.dtype), Read(call.value, call.keys, call.dtype),
               outputs.attention_weights),
        call, outputs.out);
}

void TransformerEncoder(const ModuleConfig& config, const ModuleWeights& weights, const Call& call,
                        const Outputs& outputs) {
  const auto epsilon = static_cast<double>(config.layer_norm_epsilon);
  Matrix x = Read(call.query, call.queries, call.dtype);
  for (const TransformerLayerWeights& layer : weights.layers) {
    float* seen = &layer == &weights.layers.back() ? outputs.attention_weights : nullptr;
    if (config.norm_first) {
      const Matrix normal = LayerNorm(x, layer.attention_norm, epsilon);
      Add(Attend(config, layer.attention, call, normal, normal, normal, seen), x);
      Add(FeedForward(config, layer, LayerNorm(x, layer.ffn_norm, epsilon)), x);
    } else {
      Add(Attend(config, layer.attention, call, x, x, x, seen), x);
      x = LayerNorm(x, layer.attention_norm, epsilon);
      Add(FeedForward(config, layer, x), x);
      x = LayerNorm(x, layer.ffn_norm, epsilon);
    }
  }
  if (config.final_norm) x = LayerNorm(x, weights.final_norm, epsilon);
  Write(x, call, outputs.out);
}

}  // namespace attendant::attention::reference
