// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "tests/support/cuda/encoder_case.h"

namespace attendant::cuda_test {
namespace {

using Rows = std::vector<float>;  // [rows, width]

// out [rows, outputs] = x [rows, inputs] weight^T + bias
Rows Linear(const Rows& x, const AttendantCudaLinear& linear, int64_t outputs, int64_t inputs) {
  const auto rows = static_cast<int64_t>(x.size()) / inputs;
  Rows out(static_cast<size_t>(rows * outputs));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = linear.bias[o];
      for (int64_t k = 0; k < inputs; ++k) {
        sum += static_cast<double>(x[static_cast<size_t>(i * inputs + k)]) *
               linear.weight[o * inputs + k];
      }
      out[static_cast<size_t>(i * outputs + o)] = static_cast<float>(sum);
    }
  }
  return out;
}

void Normalize(const AttendantCudaNorm& norm, float epsilon, int64_t hidden, Rows& x) {
  for (size_t begin = 0; begin < x.size(); begin += static_cast<size_t>(hidden)) {
    float* row = x.data() + begin;
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < hidden; ++j) mean += row[j];
    mean /= static_cast<double>(hidden);
    for (int64_t j = 0; j < hidden; ++j) variance += (row[j] - mean) * (row[j] - mean);
    const double scale = 1 / std::sqrt(variance / static_cast<double>(hidden) + epsilon);
    for (int64_t j = 0; j < hidden; ++j) {
      row[j] = static_cast<float>((row[j] - mean) * scale * norm.gamma[j] + norm.beta[j]);
    }
  }
}

void Activate(int32_t activation, Rows& x) {
  for (float& value : x) {
    const double v = value;
    if (activation == ATTENDANT_CUDA_RELU) {
      value = std::max(value, 0.0f);
    } else if (activation == ATTENDANT_CUDA_GELU_TANH) {
      const double inner = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
      value = static_cast<float>(0.5 * v * (1 + std::tanh(inner)));
    } else {
      value = static_cast<float>(0.5 * v * (1 + std::erf(v / std::sqrt(2.0))));
    }
  }
}

struct Projected {
  Rows q, k, v;
};

// One sequence's rows of one head: its weights [len, len] and its part of `context`.
void AttendHead(const Projected& p, int64_t start, int64_t len, int64_t hidden, int64_t head,
                int64_t head_dim, float* weights, Rows& context) {
  const auto at = [&](int64_t i, int64_t d) {
    return static_cast<size_t>((start + i) * hidden + head * head_dim + d);
  };
  for (int64_t i = 0; i < len; ++i) {
    std::vector<double> scores(static_cast<size_t>(len));
    for (int64_t j = 0; j < len; ++j) {
      double score = 0;
      for (int64_t d = 0; d < head_dim; ++d) {
        score += static_cast<double>(p.q[at(i, d)]) * p.k[at(j, d)];
      }
      scores[static_cast<size_t>(j)] = score / std::sqrt(static_cast<double>(head_dim));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    for (int64_t j = 0; j < len; ++j) {
      weights[i * len + j] = static_cast<float>(scores[static_cast<size_t>(j)] / sum);
    }
    for (int64_t d = 0; d < head_dim; ++d) {
      double value = 0;
      for (int64_t j = 0; j < len; ++j) {
        value += scores[static_cast<size_t>(j)] / sum * p.v[at(j, d)];
      }
      context[at(i, d)] = static_cast<float>(value);
    }
  }
}

Rows Attend(const AttendantCudaConfig& config, const PackedSequences& batch, const Projected& p,
            Rows& all_weights) {
  const int64_t head_dim = config.hidden / config.heads;
  Rows context(p.q.size());
  for (int64_t s = 0; s < batch.batch(); ++s) {
    const int64_t len = batch.len(s);
    for (int64_t head = 0; head < config.heads; ++head) {
      const size_t begin = all_weights.size();
      all_weights.resize(begin + static_cast<size_t>(len * len));
      AttendHead(p, batch.start(s), len, config.hidden, head, head_dim, all_weights.data() + begin,
                 context);
    }
  }
  return context;
}

void Add(const Rows& update, Rows& states) {
  for (size_t i = 0; i < states.size(); ++i) states[i] += update[i];
}

Rows Embed(const RandomEncoder& encoder, const AttendantCudaBatch& batch) {
  const AttendantCudaWeights& weights = encoder.weights();
  const int64_t hidden = encoder.config().hidden;
  Rows states(static_cast<size_t>(batch.tokens * hidden));
  for (int64_t t = 0; t < batch.tokens; ++t) {
    for (int64_t j = 0; j < hidden; ++j) {
      states[static_cast<size_t>(t * hidden + j)] =
          weights.token_embedding[batch.token_ids[t] * hidden + j] +
          weights.position_embedding[batch.positions[t] * hidden + j] +
          weights.segment_embedding[batch.segment_ids[t] * hidden + j];
    }
  }
  return states;
}

}  // namespace

PlainResults RunPlain(const RandomEncoder& encoder, const PackedSequences& batch) {
  const AttendantCudaConfig& config = encoder.config();
  const int64_t hidden = config.hidden;
  const float epsilon = config.layer_norm_epsilon;
  PlainResults results;
  Rows states = Embed(encoder, batch.view());
  Normalize(encoder.weights().embedding_norm, epsilon, hidden, states);
  results.states.push_back(states);
  for (int64_t i = 0; i < config.layers; ++i) {
    const AttendantCudaLayer& layer = encoder.weights().layers[i];
    const Projected projected{Linear(states, layer.query, hidden, hidden),
                              Linear(states, layer.key, hidden, hidden),
                              Linear(states, layer.value, hidden, hidden)};
    results.attention_weights.emplace_back();
    const Rows context = Attend(config, batch, projected, results.attention_weights.back());
    Add(Linear(context, layer.attention_output, hidden, hidden), states);
    Normalize(layer.attention_norm, epsilon, hidden, states);
    Rows wide = Linear(states, layer.ffn_up, config.ffn, hidden);
    Activate(config.activation, wide);
    Add(Linear(wide, layer.ffn_down, hidden, config.ffn), states);
    Normalize(layer.ffn_norm, epsilon, hidden, states);
    results.states.push_back(states);
  }
  return results;
}

std::vector<float> PlainMean(const std::vector<float>& states, int64_t begin, int64_t end,
                             int64_t hidden) {
  std::vector<double> sums(static_cast<size_t>(hidden));
  double squares = 0;
  for (int64_t j = 0; j < hidden; ++j) {
    double& sum = sums[static_cast<size_t>(j)];
    for (int64_t t = begin; t < end; ++t) sum += states[static_cast<size_t>(t * hidden + j)];
    squares += sum * sum;
  }
  std::vector<float> mean(static_cast<size_t>(hidden));
  std::transform(sums.begin(), sums.end(), mean.begin(),
                 [&](double sum) { return static_cast<float>(sum / std::sqrt(squares)); });
  return mean;
}

}  // namespace attendant::cuda_test
