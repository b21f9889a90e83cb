// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/core/shape.h"

// The formulas of an encoder, one function each, with every sum in double.
namespace attendant::reference {

// A matrix that owns its values: [rows, columns].
struct Matrix {
  Matrix(int64_t num_rows, int64_t num_columns)
      : values(static_cast<size_t>(num_rows * num_columns)), rows(num_rows), columns(num_columns) {}

  float& at(int64_t row, int64_t column) {
    return values[static_cast<size_t>(row * columns + column)];
  }
  float at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }

  std::vector<float> values;
  int64_t rows;
  int64_t columns;
};

// y = x weight^T + bias: x [rows, inputs] -> y [rows, outputs]
Matrix Linear(const Matrix& x, const LinearWeights& linear);

Matrix Add(const Matrix& a, const Matrix& b);

// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row (Ba, Kiros, Hinton 2016), or
// x / sqrt(mean of squares + epsilon) * gamma (Zhang, Sennrich 2019)
Matrix Normalize(const Matrix& x, const LayerNormWeights& norm, NormKind kind, float epsilon);

// An RMS norm of each head [head_dim] of a row.
Matrix NormalizeHeads(const Matrix& x, int64_t heads, const LayerNormWeights& norm, NormKind kind,
                      float epsilon);

// gelu(x) = x / 2 (1 + erf(x / sqrt 2)), or with tanh (Hendrycks, Gimpel 2016), or max(x, 0), or
// silu(x) = x / (1 + e^-x)
Matrix Activate(const Matrix& x, Activation activation);

// weights = softmax(scores); all 0 when every score is -inf.
void Softmax(std::vector<double>& scores);

Matrix Multiply(const Matrix& a, const Matrix& b);  // value by value

// Rotary positions (Su et al. 2021) of x [len, hidden], whose tokens stand at `positions` [len]:
// values i and i + head_dim / 2 of every head turn by position * rate(i).
Matrix Rotate(const Matrix& x, int64_t heads, const Rotary& rotary,
              std::span<const int32_t> positions);

// Added to the scaled score of a query and a key; -inf: the query does not see the key.
using ScoreOffset = absl::FunctionRef<double(int64_t head, int64_t query, int64_t key)>;

// The attention scores: q k^T * scale + offset.
struct Scores {
  int64_t heads;  // of q; k and v may have fewer, each for several of q that follow each other
  double scale;
  ScoreOffset offset;
};

// The dot product of head `head` of a row of x and of a row of y, where y may have fewer heads.
double DotOfHead(const Matrix& x, int64_t x_row, const Matrix& y, int64_t y_row, int64_t head_dim,
                 int64_t head);

// For each head: softmax(scores) v (Vaswani et al. 2017), heads side by side.
// q [len, context_width], k, v [len, key_width] -> [len, context_width]
Matrix SelfAttention(const Matrix& q, const Matrix& k, const Matrix& v, const Scores& scores);

// softmax(scores) of one head of q -> [len, len]
Matrix AttentionWeights(const Matrix& q, const Matrix& k, int64_t head, const Scores& scores);

// For each row the sum over its experts of weight * down(activation(up(x))), plus experts_bias, as
// encoder_config.h says which are chosen (Shazeer et al. 2017).
Matrix MixExperts(const EncoderConfig& config, const EncoderLayerWeights& layer, const Matrix& x);

// The context of layer `layer` of rows that are projected: q [rows, context_width], k, v
// [rows, key_width] -> [rows, context_width]
using Attention =
    absl::FunctionRef<Matrix(int64_t layer, const Matrix& q, const Matrix& k, const Matrix& v)>;
// Gets x [rows, hidden] as layer `layer` reads it; `layers`: the last states.
using StatesSeen = absl::FunctionRef<void(int64_t layer, const Matrix& x)>;

// All that encoder_config.h says of an encoder, after its input x [rows, hidden].
Matrix RunLayers(const EncoderConfig& config, const EncoderWeights& weights, Matrix x,
                 Attention attention, StatesSeen seen);

}  // namespace attendant::reference
