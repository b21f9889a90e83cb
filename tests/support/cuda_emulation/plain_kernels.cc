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

void Quantize(const std::vector<float>& row, int64_t index, uint8_t* quantized, float* scales) {
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::abs(value));
  const float scale = largest < 1e-30f ? 1.0f : largest / kE4m3Max;
  scales[index] = scale;
  for (size_t j = 0; j < row.size(); ++j) {
    quantized[static_cast<size_t>(index) * row.size() + j] = ToE4m3(row[j] / scale).bits;
  }
}

// states [index] = LayerNorm(row), and once more for the next matmul.
void NormRow(DType dtype, std::vector<float> row, const float* gamma, const float* beta,
             float epsilon, int64_t index, void* states, uint8_t* quantized, float* scales) {
  double mean = 0, variance = 0;
  for (const float value : row) mean += value;
  mean /= static_cast<double>(row.size());
  for (const float value : row) variance += (value - mean) * (value - mean);
  const double scale = 1 / std::sqrt(variance / static_cast<double>(row.size()) + epsilon);
  const auto width = static_cast<int64_t>(row.size());
  for (int64_t j = 0; j < width; ++j) {
    float& value = row[static_cast<size_t>(j)];
    value = static_cast<float>((value - mean) * scale) * gamma[j] + beta[j];
    Store(dtype, value, states, index * width + j);
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
    case Activation::kIdentity:
      break;
  }
  return x;
}

// weights [keys.end - keys.begin] = softmax(scale * q k^T)
std::vector<double> Weights(DType dtype, const void* q, const void* k, int64_t q_at, int64_t k_at,
                            int64_t k_stride, KeyRange keys, int64_t head_dim, float scale) {
  std::vector<double> weights;
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    double score = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      score +=
          static_cast<double>(Load(dtype, q, q_at + d)) * Load(dtype, k, k_at + j * k_stride + d);
    }
    weights.push_back(score * scale);
  }
  if (weights.empty()) return weights;
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

void AttendTask(DType dtype, const AttentionArgs& args, const AttentionTask& task, int64_t head,
                int64_t head_dim) {
  const int64_t end = std::min<int64_t>(task.query_begin + kTaskQueries, task.queries);
  const int64_t offset = head * head_dim;
  for (int64_t i = task.query_begin; i < end; ++i) {
    const KeyRange keys = AllowedKeys(args.rule, static_cast<int32_t>(i), task.keys);
    const std::vector<double> weights =
        Weights(dtype, args.q, args.k, (task.query_row + i) * args.q_stride + offset,
                task.key_row * args.k_stride + offset, args.k_stride, keys, head_dim, args.scale);
    for (int64_t d = 0; d < head_dim; ++d) {
      double sum = 0;
      for (size_t j = 0; j < weights.size(); ++j) {
        const int64_t row = task.key_row + keys.begin + static_cast<int64_t>(j);
        sum += weights[j] * Load(dtype, args.v, row * args.v_stride + offset + d);
      }
      Store(dtype, static_cast<float>(sum), args.context,
            (task.query_row + i) * args.context_stride + offset + d);
    }
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
        row[static_cast<size_t>(j)] =
            Load(dtype, a.token_embedding, a.token_ids[t] * hidden + j) +
            Load(dtype, a.position_embedding, a.positions[t] * hidden + j) +
            Load(dtype, a.segment_embedding, a.segment_ids[t] * hidden + j);
      }
      NormRow(dtype, row, a.gamma, a.beta, a.epsilon, t, a.states, a.quantized, a.scales);
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
      NormRow(dtype, row, a.gamma, a.beta, a.epsilon, t, a.states, a.quantized, a.scales);
    }
  });
}

cudaError_t LaunchActivate(DType dtype, const ActivateArgs& a, const BatchCounts* counts,
                           int64_t max_tokens, int64_t width, cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t t = 0; t < std::min<int64_t>(counts->tokens, max_tokens); ++t) {
      std::vector<float> row(static_cast<size_t>(width));
      for (int64_t j = 0; j < width; ++j) {
        row[static_cast<size_t>(j)] = Apply(a.activation, Load(dtype, a.values, t * width + j));
        if (a.quantized == nullptr) {
          Store(dtype, row[static_cast<size_t>(j)], a.values, t * width + j);
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
                              : head_dim % 8 == 0 && head_dim <= 128;
}

cudaError_t PrepareAttention(DType, int64_t) {
  return cudaFuncSetAttribute(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024);
}

cudaError_t LaunchAttentionWeights(DType dtype, const AttentionWeightsArgs& a, int64_t len,
                                   int64_t head_dim, cudaStream_t stream) {
  return EnqueueOnStream(stream, [=] {
    for (int64_t i = 0; i < (a.queries > 0 ? a.queries : len); ++i) {
      const std::vector<double> weights =
          Weights(dtype, a.q, a.k, i * a.q_stride, 0, a.k_stride, {0, static_cast<int32_t>(len)},
                  head_dim, a.scale);
      std::transform(weights.begin(), weights.end(), a.out + i * len,
                     [](double weight) { return static_cast<float>(weight); });
    }
  });
}

}  // namespace attendant::cuda
