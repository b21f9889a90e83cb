// SPDX-License-Identifier: Apache-2.0
// kernels.h and attention_kernels.h as plain loops: what the engine's tests run on when they are
// about the engine, thousands of times faster than device code thread by thread.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "kernels/cuda/cuda_interface.h"
#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/kernels.h"
#include "tests/support/cuda_emulation/emulation.h"
#include "tests/support/cuda_emulation/number_formats.h"

namespace attendant::cuda {
namespace {

using cuda_emulation::EnqueueOnStream;

cudaDataType TypeOf(DType dtype) {
  if (dtype == DType::kF32) return CUDA_R_32F;
  return dtype == DType::kF16 ? CUDA_R_16F : CUDA_R_16BF;
}
float Load(DType dtype, const void* values, int64_t index) {
  return cuda_emulation::LoadFloat(TypeOf(dtype), values, index);
}
void Store(DType dtype, float value, void* values, int64_t index) {
  cuda_emulation::StoreFloat(TypeOf(dtype), value, values, index);
}

std::vector<float> LoadRow(DType dtype, const void* values, int64_t begin, int64_t width) {
  std::vector<float> row;
  for (int64_t j = 0; j < width; ++j) row.push_back(Load(dtype, values, begin + j));
  return row;
}

void Quantize(const std::vector<float>& row, int64_t index, uint8_t* quantized, float* scales) {
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::abs(value));
  const float scale = largest < 1e-30f ? 1.0f : largest / kE4m3Max;
  scales[index] = scale;
  for (size_t j = 0; j < row.size(); ++j) {
    quantized[static_cast<size_t>(index) * row.size() + j] = ToE4m3(row[j] / scale).bits;
  }
}

void NormRow(const NormWeights& norm, float epsilon, bool rms, std::vector<float>& row) {
  if (norm.gamma == nullptr) return;
  double mean = 0, variance = 0;
  for (const float value : row) mean += rms ? 0 : value;
  mean /= static_cast<double>(row.size());
  for (const float value : row) variance += (value - mean) * (value - mean);
  const double scale = 1 / std::sqrt(variance / static_cast<double>(row.size()) + epsilon);
  for (size_t j = 0; j < row.size(); ++j) {
    row[j] = static_cast<float>((row[j] - mean) * scale) * norm.gamma[j] + norm.beta[j];
  }
}

// states [index] = row, and once more for the next matmul.
void StoreRow(DType dtype, const std::vector<float>& row, int64_t index, void* states,
              uint8_t* quantized, float* scales) {
  const auto width = static_cast<int64_t>(row.size());
  for (int64_t j = 0; j < width; ++j) {
    Store(dtype, row[static_cast<size_t>(j)], states, index * width + j);
  }
  if (quantized != nullptr) Quantize(row, index, quantized, scales);
}

float Apply(Activation activation, float x) {
  switch (activation) {
    case Activation::kGeluErf:
      return 0.5f * x * (1 + std::erf(x * 0.70710678f));
    case Activation::kGeluTanh:
      return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0f);
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kIdentity:
      break;
  }
  return x;
}

// A head's queries or keys: row i at values[begin + i * stride].
struct HeadRows {
  const void* values;
  int64_t begin, stride;
};

// Of one query, in its sequence.
struct ScoreTerms {
  float scale;
  AttentionRule rule;
  DistanceRule distance;  // positions of the sequence, scores of the head
  int64_t keys;
};

// weights [keys] = softmax(scale * q k^T + bias), zeros where that is not allowed
std::vector<double> Weights(DType dtype, const HeadRows& q, const HeadRows& k, int64_t query,
                            int64_t head_dim, const ScoreTerms& terms) {
  std::vector<double> weights;
  const int32_t* positions = terms.distance.positions;
  for (int64_t j = 0; j < terms.keys; ++j) {
    const int64_t distance =
        positions == nullptr ? j - query : int64_t{positions[j]} - positions[query];
    double score = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      score += static_cast<double>(Load(dtype, q.values, q.begin + query * q.stride + d)) *
               Load(dtype, k.values, k.begin + j * k.stride + d);
    }
    score *= terms.scale;
    if (terms.distance.scores != nullptr) score += terms.distance.scores[distance];
    const bool seen = -distance <= terms.rule.keys_before && distance <= terms.rule.keys_after;
    weights.push_back(seen ? score : -INFINITY);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) {
    sum += weight = weight == -INFINITY ? 0 : std::exp(weight - largest);
  }
  for (double& weight : weights) weight /= sum == 0 ? 1 : sum;
  return weights;
}

void AttendTask(DType dtype, const AttentionArgs& args, const AttentionTask& task, int64_t head,
                int64_t head_dim) {
  const int64_t end = std::min<int64_t>(task.query_begin + kTaskQueries, task.queries);
  const int64_t column = head * head_dim, key_column = head / args.heads_per_key * head_dim;
  const HeadRows q{args.q, task.query_row * args.q_stride + column, args.q_stride};
  const HeadRows k{args.k, task.key_row * args.k_stride + key_column, args.k_stride};
  ScoreTerms terms{args.scale, args.rule, args.distance, task.keys};
  if (terms.distance.positions != nullptr) terms.distance.positions += task.key_row;
  if (terms.distance.scores != nullptr) terms.distance.scores += head * args.distance.stride;
  for (int64_t i = task.query_begin; i < end; ++i) {
    const std::vector<double> weights = Weights(dtype, q, k, i, head_dim, terms);
    for (int64_t d = 0; d < head_dim; ++d) {
      double sum = 0;
      for (size_t j = 0; j < weights.size(); ++j) {
        const int64_t row = task.key_row + static_cast<int64_t>(j);
        sum += weights[j] * Load(dtype, args.v, row * args.v_stride + key_column + d);
      }
      Store(dtype, static_cast<float>(sum), args.context,
            (task.query_row + i) * args.context_stride + column + d);
    }
  }
}

// One head of queries or keys [head_dim] at `at`, placed as kernels.h says.
void PlaceHead(DType dtype, const PlaceHeadsArgs& a, const float* gamma, int64_t position,
               int64_t at) {
  const int64_t pairs = a.head_dim / 2;
  std::vector<float> row;
  for (int64_t d = 0; d < a.head_dim; ++d) row.push_back(Load(dtype, a.qkv, at + d));
  const std::vector<float> zeros(row.size());
  NormRow({.gamma = gamma, .beta = zeros.data()}, a.epsilon, true, row);
  for (int64_t i = 0; i < pairs; ++i) {
    const float low = row[static_cast<size_t>(i)], high = row[static_cast<size_t>(i + pairs)];
    const float* angles = a.rotary == nullptr ? nullptr : a.rotary + position * a.head_dim + i;
    const float cosine = angles == nullptr ? 1 : angles[0];
    const float sine = angles == nullptr ? 0 : angles[pairs];
    Store(dtype, low * cosine - high * sine, a.qkv, at + i);
    Store(dtype, high * cosine + low * sine, a.qkv, at + i + pairs);
  }
}

float PoolValue(DType dtype, const void* states, int64_t begin, int64_t end, int64_t hidden,
                int64_t j, int32_t pooling) {
  if (pooling == ATTENDANT_CUDA_POOL_CLS) return Load(dtype, states, begin * hidden + j);
  if (pooling == ATTENDANT_CUDA_POOL_LAST) return Load(dtype, states, (end - 1) * hidden + j);
  double sum = 0;
  float largest = Load(dtype, states, begin * hidden + j);
  for (int64_t t = begin; t < end; ++t) {
    sum += Load(dtype, states, t * hidden + j);
    largest = std::max(largest, Load(dtype, states, t * hidden + j));
  }
  return pooling == ATTENDANT_CUDA_POOL_MAX
             ? largest
             : static_cast<float>(sum / static_cast<double>(end - begin));
}

}  // namespace

cudaError_t LaunchEmbed(DType dtype, const EmbedArgs& a, const BatchCounts* counts,
                        int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t t = 0; t < std::min<int64_t>(counts->tokens, max_tokens); ++t) {
      std::vector<float> row(static_cast<size_t>(hidden));
      for (int64_t j = 0; j < hidden; ++j) {
        float& value = row[static_cast<size_t>(j)];
        value = Load(dtype, a.token_embedding, a.token_ids[t] * hidden + j) * a.token_scale *
                    (a.token_scales == nullptr ? 1 : a.token_scales[t]) +
                Load(dtype, a.segment_embedding, a.segment_ids[t] * hidden + j);
        if (a.position_embedding == nullptr) continue;
        value += Load(dtype, a.position_embedding, a.positions[t] * hidden + j);
      }
      NormRow(a.norm, a.epsilon, a.rms, row);
      if (a.residual != nullptr) std::copy(row.begin(), row.end(), a.residual + t * hidden);
      NormRow(a.next, a.epsilon, a.rms, row);
      StoreRow(dtype, row, t, a.states, a.quantized, a.scales);
    }
  });
}

cudaError_t LaunchResidualNorm(DType dtype, const ResidualNormArgs& a, const BatchCounts* counts,
                               int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t t = 0; t < std::min<int64_t>(counts->tokens, max_tokens); ++t) {
      std::vector<float> row(static_cast<size_t>(hidden));
      for (int64_t j = 0; j < hidden; ++j) {
        row[static_cast<size_t>(j)] =
            Load(dtype, a.states, t * hidden + j) + Load(dtype, a.update, t * hidden + j);
      }
      NormRow(a.norm, a.epsilon, a.rms, row);
      StoreRow(dtype, row, t, a.states, a.quantized, a.scales);
    }
  });
}

cudaError_t LaunchSecondNorm(DType dtype, const ResidualNormArgs& a, const NormWeights& branch_norm,
                             const BatchCounts* counts, int64_t max_tokens, int64_t hidden,
                             cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t t = 0; t < std::min<int64_t>(counts->tokens, max_tokens); ++t) {
      const std::vector<float> states = LoadRow(dtype, a.states, t * hidden, hidden);
      std::vector<float> row = LoadRow(dtype, a.update, t * hidden, hidden);
      for (size_t j = 0; j < row.size(); ++j) row[j] += states[j];
      NormRow(branch_norm, a.epsilon, a.rms, row);
      for (size_t j = 0; j < row.size(); ++j) row[j] += states[j];
      NormRow(a.norm, a.epsilon, a.rms, row);
      StoreRow(dtype, row, t, a.states, a.quantized, a.scales);
    }
  });
}

cudaError_t LaunchBranchNorm(DType dtype, const BranchNormArgs& a, const BatchCounts* counts,
                             int64_t max_tokens, int64_t hidden, cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t t = 0; t < std::min<int64_t>(counts->tokens, max_tokens); ++t) {
      std::vector<float> row(static_cast<size_t>(hidden));
      for (int64_t j = 0; j < hidden; ++j) {
        row[static_cast<size_t>(j)] = Load(dtype, a.update, t * hidden + j);
      }
      NormRow(a.norm, a.epsilon, a.rms, row);
      for (int64_t j = 0; j < hidden && a.residual != nullptr; ++j) {
        row[static_cast<size_t>(j)] = a.residual[t * hidden + j] += row[static_cast<size_t>(j)];
      }
      NormRow(a.next, a.epsilon, a.rms, row);
      StoreRow(dtype, row, t, a.states, a.quantized, a.scales);
    }
  });
}

cudaError_t LaunchWholeNorm(DType dtype, const WholeNormArgs& a, const BatchCounts* counts,
                            int64_t max_tokens, cudaStream_t stream) {
  const auto norm = [=](int64_t at, int64_t width, const NormWeights& weights) {
    std::vector<float> row = LoadRow(dtype, a.qkv, at, width);
    NormRow(weights, a.epsilon, a.rms, row);
    for (const float value : row) Store(dtype, value, a.qkv, at++);
  };
  return EnqueueOnStream(stream, [=] {
    for (int64_t t = 0; t < std::min<int64_t>(counts->tokens, max_tokens); ++t) {
      norm(t * a.stride, a.query_width, a.query_norm);
      norm(t * a.stride + a.query_width, a.key_width, a.key_norm);
    }
  });
}

cudaError_t LaunchPlaceHeads(DType dtype, const PlaceHeadsArgs& a, const BatchCounts* counts,
                             int64_t max_tokens, cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t t = 0; t < std::min<int64_t>(counts->tokens, max_tokens); ++t) {
      for (int64_t head = 0; head < a.heads + a.key_heads; ++head) {
        PlaceHead(dtype, a, head < a.heads ? a.query_norm : a.key_norm, a.positions[t],
                  t * a.stride + head * a.head_dim);
      }
    }
  });
}

cudaError_t LaunchActivate(DType dtype, const ActivateArgs& a, const BatchCounts* counts,
                           int64_t max_tokens, int64_t width, cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t t = 0; t < std::min<int64_t>(counts->tokens, max_tokens); ++t) {
      std::vector<float> row(static_cast<size_t>(width));
      for (int64_t j = 0; j < width; ++j) {
        const int64_t from = (a.gated ? 2 * t : t) * width + j;
        float& value = row[static_cast<size_t>(j)];
        value = Apply(a.activation, Load(dtype, a.values, from));
        if (a.gated) value *= Load(dtype, a.values, from + width);
        if (a.quantized == nullptr) {
          Store(dtype, value, a.gated ? a.out : a.values, t * width + j);
        }
      }
      if (a.quantized != nullptr) Quantize(row, t, a.quantized, a.scales);
    }
  });
}

cudaError_t LaunchPool(DType dtype, const PoolArgs& a, const BatchCounts* counts,
                       int64_t max_sequences, int64_t hidden, cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t i = 0; i < std::min<int64_t>(counts->sequences, max_sequences); ++i) {
      const PoolTask& task = a.tasks[i];
      if (task.pooling == ATTENDANT_CUDA_POOL_NONE) continue;
      float* out = a.pooled + i * hidden;
      double squares = 0;
      for (int64_t j = 0; j < task.dims; ++j) {
        out[j] = PoolValue(dtype, a.states, a.seq_starts[i], a.seq_starts[i + 1], hidden, j,
                           task.pooling);
        squares += static_cast<double>(out[j]) * out[j];
      }
      const double scale = 1 / std::max(std::sqrt(squares), 1e-12);
      for (int64_t j = 0; j < task.dims && task.normalize != 0; ++j) {
        out[j] = static_cast<float>(out[j] * scale);
      }
    }
  });
}

cudaError_t LaunchToFloat(DType dtype, const void* values, float* out, int64_t rows, int64_t width,
                          cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t i = 0; i < rows * width; ++i) out[i] = Load(dtype, values, i);
  });
}

cudaError_t LaunchAttention(DType dtype, const AttentionArgs& args, const BatchCounts* counts,
                            int64_t max_tasks, int64_t heads, int64_t head_dim,
                            cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t i = 0; i < std::min<int64_t>(counts->attention_tasks, max_tasks); ++i) {
      for (int64_t head = 0; head < heads; ++head) {
        AttendTask(dtype, args, args.tasks[i], head, head_dim);
      }
    }
  });
}

bool HasAttention(DType dtype, int64_t head_dim) {
  return dtype == DType::kF32 ? head_dim % 4 == 0 && head_dim <= 256
                              : head_dim % 8 == 0 && head_dim <= 256;
}

cudaError_t PrepareAttention(DType, int64_t) {
  return cudaFuncSetAttribute(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024);
}

cudaError_t LaunchAttentionWeights(DType dtype, const AttentionWeightsArgs& a, int64_t len,
                                   int64_t head_dim, cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t i = 0; i < (a.queries > 0 ? a.queries : len); ++i) {
      std::vector<double> weights =
          Weights(dtype, {a.q, 0, a.q_stride}, {a.k, 0, a.k_stride}, a.first_query + i, head_dim,
                  {a.scale, a.rule, a.distance, a.keys > 0 ? a.keys : len});
      weights.resize(static_cast<size_t>(len));
      std::transform(weights.begin(), weights.end(), a.out + i * len,
                     [](double weight) { return static_cast<float>(weight); });
    }
  });
}

}  // namespace attendant::cuda
