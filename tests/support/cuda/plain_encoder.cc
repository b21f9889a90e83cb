// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>

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
      double sum = linear.bias == nullptr ? 0 : linear.bias[o];
      for (int64_t k = 0; k < inputs; ++k) {
        sum += static_cast<double>(x[static_cast<size_t>(i * inputs + k)]) *
               linear.weight[o * inputs + k];
      }
      out[static_cast<size_t>(i * outputs + o)] = static_cast<float>(sum);
    }
  }
  return out;
}

// Each row [width] of x.
Rows Normalize(const AttendantCudaNorm& norm, float epsilon, bool rms, int64_t width, Rows x) {
  if (norm.gamma == nullptr) return x;
  for (size_t begin = 0; begin < x.size(); begin += static_cast<size_t>(width)) {
    float* row = x.data() + begin;
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < width && !rms; ++j) mean += row[j];
    mean /= static_cast<double>(width);
    for (int64_t j = 0; j < width; ++j) variance += (row[j] - mean) * (row[j] - mean);
    const double scale = 1 / std::sqrt(variance / static_cast<double>(width) + epsilon);
    for (int64_t j = 0; j < width; ++j) {
      const double beta = norm.beta == nullptr ? 0 : norm.beta[j];
      row[j] = static_cast<float>((row[j] - mean) * scale * norm.gamma[j] + beta);
    }
  }
  return x;
}

void Activate(int32_t activation, Rows& x) {
  for (float& value : x) {
    const double v = value;
    if (activation == ATTENDANT_CUDA_RELU) {
      value = std::max(value, 0.0f);
    } else if (activation == ATTENDANT_CUDA_SILU) {
      value = static_cast<float>(v / (1 + std::exp(-v)));
    } else if (activation == ATTENDANT_CUDA_GELU_TANH) {
      const double inner = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
      value = static_cast<float>(0.5 * v * (1 + std::tanh(inner)));
    } else {
      value = static_cast<float>(0.5 * v * (1 + std::erf(v / std::sqrt(2.0))));
    }
  }
}

void Add(const Rows& update, Rows& states) {
  for (size_t i = 0; i < states.size(); ++i) states[i] += update[i];
}

// An encoder over one batch, step by step.
class PlainEncoder {
 public:
  PlainEncoder(const RandomEncoder& encoder, const PackedSequences& batch)
      : config_(encoder.config()),
        weights_(encoder.weights()),
        batch_(batch),
        view_(batch.view()),
        head_dim_(config_.head_width > 0 ? config_.head_width : config_.hidden / config_.heads),
        key_heads_(config_.kv_heads > 0 ? config_.kv_heads : config_.heads) {}

  PlainResults Run() {
    PlainResults results;
    const bool post = config_.norm_place == ATTENDANT_CUDA_NORM_POST;
    const AttendantCudaNorm none{};
    Rows x = Embed();
    results.states.push_back(x);
    for (int64_t i = 0; i < config_.layers; ++i) {
      const AttendantCudaLayer& layer = weights_.layers[i];
      results.attention_weights.emplace_back();
      const Rows context = Attend(layer, Norm(post ? none : layer.attention_norm, x),
                                  results.attention_weights.back());
      Rows y = Linear(context, layer.attention_output, config_.hidden, config_.heads * head_dim_);
      if (post && layer.attention_output_norm.gamma != nullptr) Add(x, y);
      Add(Norm(layer.attention_output_norm, y), x);
      x = Norm(post ? layer.attention_norm : none, x);
      Add(Norm(layer.ffn_output_norm, FeedForward(layer, Norm(post ? none : layer.ffn_norm, x))),
          x);
      x = Norm(post ? layer.ffn_norm : none, x);
      if (i + 1 == config_.layers) x = Norm(weights_.final_norm, x);
      results.states.push_back(x);
    }
    return results;
  }

 private:
  Rows Norm(const AttendantCudaNorm& norm, const Rows& x) const {
    return Normalize(norm, config_.layer_norm_epsilon, config_.rms_norm != 0, config_.hidden, x);
  }

  Rows Embed() const {
    const bool projects = config_.embedding_width > 0;
    const int64_t width = projects ? config_.embedding_width : config_.hidden;
    const float scale = config_.embedding_scale > 0 ? config_.embedding_scale : 1;
    Rows states(static_cast<size_t>(view_.tokens * width));
    for (int64_t t = 0; t < view_.tokens; ++t) {
      for (int64_t j = 0; j < width; ++j) {
        float& value = states[static_cast<size_t>(t * width + j)];
        value = weights_.token_embedding[view_.token_ids[t] * width + j] * scale *
                    (config_.scales_tokens != 0 ? view_.token_scales[t] : 1) +
                weights_.segment_embedding[view_.segment_ids[t] * width + j];
        if (weights_.position_embedding == nullptr) continue;
        value += weights_.position_embedding[view_.positions[t] * width + j];
      }
    }
    states = Normalize(weights_.embedding_norm, config_.layer_norm_epsilon, config_.rms_norm != 0,
                       width, std::move(states));
    return projects ? Linear(states, weights_.embedding_projection, config_.hidden, width) : states;
  }

  Rows NormedWhole(Rows x, const AttendantCudaNorm& norm, int64_t width) const {
    return Normalize(norm, config_.layer_norm_epsilon, config_.rms_norm != 0, width, std::move(x));
  }

  // Queries or keys [tokens, heads, head_dim] with their norm, turned by their positions.
  Rows Placed(Rows x, const float* gamma, const float* angles) const {
    x = Normalize({gamma, nullptr}, config_.layer_norm_epsilon, true, head_dim_, std::move(x));
    if (angles == nullptr) return x;
    const int64_t width = static_cast<int64_t>(x.size()) / view_.tokens, pairs = head_dim_ / 2;
    for (int64_t t = 0; t < view_.tokens; ++t) {
      const float* turn = angles + view_.positions[t] * head_dim_;
      for (int64_t begin = t * width; begin < (t + 1) * width; begin += head_dim_) {
        for (int64_t i = 0; i < pairs; ++i) {
          float& low = x[static_cast<size_t>(begin + i)];
          float& high = x[static_cast<size_t>(begin + i + pairs)];
          const float turned = low * turn[i] - high * turn[i + pairs];
          high = high * turn[i] + low * turn[i + pairs];
          low = turned;
        }
      }
    }
    return x;
  }

  struct Projected {
    Rows q, k, v;
  };

  // What is added to a scaled score; -inf: the query does not see the key.
  double Offset(const AttendantCudaLayer& layer, int64_t sequence, int64_t head, int64_t i,
                int64_t j) const {
    const int64_t start = batch_.start(sequence);
    const int64_t distance = view_.positions[start + j] - view_.positions[start + i];
    if (j >= batch_.keys(sequence) || (config_.causal != 0 && j > i) ||
        (layer.local != 0 && std::abs(distance) > config_.window)) {
      return -INFINITY;
    }
    if (weights_.score_by_distance == nullptr) return 0;
    return weights_.score_by_distance[(2 * head + 1) * config_.max_positions - head - 1 + distance];
  }

  // One sequence's rows of one head: its weights [len, len] and its part of `context`.
  void AttendHead(const AttendantCudaLayer& layer, const Projected& p, int64_t sequence,
                  int64_t head, float* weights, Rows& context) const {
    const int64_t start = batch_.start(sequence), len = batch_.len(sequence);
    const int64_t key_head = head / (config_.heads / key_heads_);
    const auto at = [&](int64_t row, int64_t heads, int64_t of, int64_t d) {
      return static_cast<size_t>(((start + row) * heads + of) * head_dim_ + d);
    };
    const double scale = config_.query_scale > 0 ? static_cast<double>(config_.query_scale)
                                                 : 1 / std::sqrt(static_cast<double>(head_dim_));
    for (int64_t i = 0; i < len; ++i) {
      std::vector<double> scores(static_cast<size_t>(len));
      for (int64_t j = 0; j < len; ++j) {
        double score = 0;
        for (int64_t d = 0; d < head_dim_; ++d) {
          score += static_cast<double>(p.q[at(i, config_.heads, head, d)]) *
                   p.k[at(j, key_heads_, key_head, d)];
        }
        scores[static_cast<size_t>(j)] = score * scale + Offset(layer, sequence, head, i, j);
      }
      const double largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) {
        sum += score = score == -INFINITY ? 0 : std::exp(score - largest);
      }
      if (sum == 0) sum = 1;
      for (int64_t j = 0; j < len; ++j) {
        weights[i * len + j] = static_cast<float>(scores[static_cast<size_t>(j)] / sum);
      }
      for (int64_t d = 0; d < head_dim_; ++d) {
        double value = 0;
        for (int64_t j = 0; j < len; ++j) {
          value += scores[static_cast<size_t>(j)] / sum * p.v[at(j, key_heads_, key_head, d)];
        }
        context[at(i, config_.heads, head, d)] = static_cast<float>(value);
      }
    }
  }

  Rows Attend(const AttendantCudaLayer& layer, const Rows& x, Rows& all_weights) const {
    const int64_t hidden = config_.hidden;
    const int64_t width = config_.heads * head_dim_, key_width = key_heads_ * head_dim_;
    const float* angles = layer.local != 0 ? weights_.local_rotary : weights_.rotary;
    const Projected projected{
        Placed(NormedWhole(Linear(x, layer.query, width, hidden), layer.whole_query_norm, width),
               layer.query_norm, angles),
        Placed(
            NormedWhole(Linear(x, layer.key, key_width, hidden), layer.whole_key_norm, key_width),
            layer.key_norm, angles),
        Linear(x, layer.value, key_width, hidden)};
    Rows context(projected.q.size());
    for (int64_t s = 0; s < batch_.batch(); ++s) {
      const int64_t len = batch_.len(s);
      for (int64_t head = 0; head < config_.heads; ++head) {
        const size_t begin = all_weights.size();
        all_weights.resize(begin + static_cast<size_t>(len * len));
        AttendHead(layer, projected, s, head, all_weights.data() + begin, context);
      }
    }
    return context;
  }

  Rows FeedForward(const AttendantCudaLayer& layer, const Rows& x) const {
    Rows inner = Linear(x, layer.ffn_up, config_.ffn, config_.hidden);
    if (config_.gated_ffn == 0) {
      Activate(config_.activation, inner);
    } else {
      Rows gate = Linear(x, layer.ffn_gate, config_.ffn, config_.hidden);
      Activate(config_.activation, gate);
      for (size_t i = 0; i < inner.size(); ++i) inner[i] *= gate[i];
    }
    return Linear(inner, layer.ffn_down, config_.hidden, config_.ffn);
  }

  const AttendantCudaConfig& config_;
  const AttendantCudaWeights& weights_;
  const PackedSequences& batch_;
  const AttendantCudaBatch view_;
  const int64_t head_dim_, key_heads_;
};

}  // namespace

PlainResults RunPlain(const RandomEncoder& encoder, const PackedSequences& batch) {
  return PlainEncoder(encoder, batch).Run();
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
