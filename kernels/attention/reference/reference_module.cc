// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/reference/reference_module.h"

#include <cmath>
#include <utility>

#include "kernels/attention/reference/reference.h"
#include "kernels/attention/values.h"

namespace attendant::attention::reference {
namespace {

using attendant::reference::Linear;
using attendant::reference::Matrix;

std::byte* Bytes(Matrix& x) { return reinterpret_cast<std::byte*>(x.values.data()); }

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

// The attention of all heads of projected rows, as the call masks it; weights where the pointer is
// not null.
Matrix Attend(const ModuleConfig& config, const Call& call, const Matrix& q, const Matrix& k,
              Matrix v, float* attention_weights) {
  Matrix context(q.rows, config.hidden);
  const int64_t head_dim = config.head_dim();
  Call heads = call;  // of which the masks, the lengths and the values are read
  heads.dtype = DType::kF32;
  heads.query.heads = config.heads;
  heads.value = InputRows::TokensFirst(Bytes(v), config.heads, head_dim, call.keys.seq());
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
  SoftmaxAttention(
      heads, score,
      {.out = OutputRows::TokensFirst(Bytes(context), config.heads, head_dim, call.queries.seq()),
       .attention_weights = attention_weights});
  return context;
}

}  // namespace

void MultiHeadAttention(const ModuleConfig& config, const MultiHeadWeights& weights,
                        const Call& call, const Outputs& outputs) {
  const Matrix q = Linear(Read(call.query, call.queries, call.dtype), weights.query);
  const Matrix k = Linear(Read(call.key, call.keys, call.dtype), weights.key);
  Matrix v = Linear(Read(call.value, call.keys, call.dtype), weights.value);
  const Matrix context = Attend(config, call, q, k, std::move(v), outputs.attention_weights);
  Write(Linear(context, weights.attention_output), call, outputs.out);
}

void TransformerEncoder(const ModuleConfig& config, const ModuleWeights& weights, const Call& call,
                        const Outputs& outputs) {
  const Matrix x = attendant::reference::RunLayers(
      EncoderOf(config), weights, Read(call.query, call.queries, call.dtype),
      [&](int64_t layer, const Matrix& q, const Matrix& k, const Matrix& v) {
        const bool last = layer + 1 == config.layers;
        return Attend(config, call, q, k, v, last ? outputs.attention_weights : nullptr);
      },
      [](int64_t, const Matrix&) {});
  Write(x, call, outputs.out);
}

}  // namespace attendant::attention::reference
