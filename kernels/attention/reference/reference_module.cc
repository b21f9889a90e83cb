// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/reference/reference_module.h"

#include <cmath>

#include "kernels/attention/reference/reference.h"
#include "kernels/attention/values.h"

namespace attendant::attention::reference {
namespace {

using attendant::reference::Linear;
using attendant::reference::Matrix;

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
              const Matrix& v, float* attention_weights) {
  const auto rows = [&](const Matrix& x, const Sequences& sequences) {
    return InputRows::TokensFirst(reinterpret_cast<const std::byte*>(x.values.data()), config.heads,
                                  config.head_dim(), sequences.seq());
  };
  Call heads = call;  // of which the masks and the lengths are read
  heads.dtype = DType::kF32;
  heads.query = rows(q, call.queries);
  heads.key = rows(k, call.keys);
  heads.value = rows(v, call.keys);
  if (attention_weights == nullptr) heads.need_weights = WeightsWanted::kNone;
  const double scale = call.scale.has_value()
                           ? static_cast<double>(*call.scale)
                           : 1 / std::sqrt(static_cast<double>(config.head_dim()));
  Matrix context(q.rows, config.hidden);
  SoftmaxAttention(
      heads, [&](auto... at) { return Dot(heads, at...) * scale; },
      {.out = OutputRows::TokensFirst(reinterpret_cast<std::byte*>(context.values.data()),
                                      config.heads, config.head_dim(), call.queries.seq()),
       .attention_weights = attention_weights});
  return context;
}

}  // namespace

void MultiHeadAttention(const ModuleConfig& config, const MultiHeadWeights& weights,
                        const Call& call, const Outputs& outputs) {
  const Matrix context = Attend(
      config, call, Linear(Read(call.query, call.queries, call.dtype), weights.query),
      Linear(Read(call.key, call.keys, call.dtype), weights.key),
      Linear(Read(call.value, call.keys, call.dtype), weights.value), outputs.attention_weights);
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
