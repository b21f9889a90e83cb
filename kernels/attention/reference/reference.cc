// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/reference/reference.h"

#include <cmath>
#include <vector>

#include "kernels/attention/check_call.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/values.h"

namespace attendant::attention::reference {
namespace {

// The sum is f32's: where every key has a bias of -1e9, the scores vanish in it and all weights are
// equal, as in PyTorch. In double they would not.
double Biased(float bias, absl::FunctionRef<double()> score) {
  if (bias == 0) return score();
  if (std::isinf(bias) && bias < 0) return static_cast<double>(bias);
  return static_cast<double>(static_cast<float>(score()) + bias);
}

void SumWeightedValues(const Call& call, int64_t sequence, int64_t head, int64_t query,
                       const std::vector<double>& weights, const Outputs& outputs) {
  std::byte* out = outputs.out.at(call.queries, call.dtype, sequence, head, query);
  for (int64_t d = 0; d < call.value.dim; ++d) {
    double sum = 0;
    for (size_t key = 0; key < weights.size(); ++key) {
      if (weights[key] == 0) continue;  // what is left out may hold anything
      const std::byte* value =
          call.value.at(call.keys, call.dtype, sequence, head, static_cast<int64_t>(key));
      sum += weights[key] * static_cast<double>(ReadValue(value, call.dtype, d));
    }
    WriteValue(out, call.dtype, d, static_cast<float>(sum));
  }
}

void StoreWeights(const Call& call, int64_t sequence, int64_t head, int64_t query,
                  const std::vector<double>& weights, const Outputs& outputs) {
  if (call.need_weights == WeightsWanted::kNone) return;
  const bool averaged = call.need_weights == WeightsWanted::kAveraged;
  const int64_t heads = averaged ? 1 : call.query.heads;
  float* row =
      outputs.attention_weights + WeightsOffset(call, heads, sequence) +
      ((averaged ? 0 : head) * call.queries.len(sequence) + query) * call.keys.len(sequence);
  for (size_t key = 0; key < weights.size(); ++key) {
    const float before = averaged && head > 0 ? row[key] : 0.0f;
    const double share =
        averaged ? weights[key] / static_cast<double>(call.query.heads) : weights[key];
    row[key] = before + static_cast<float>(share);
  }
}

}  // namespace

void SoftmaxAttention(const Call& call, Score score, const Outputs& outputs) {
  std::vector<double> weights;
  for (int64_t sequence = 0; sequence < call.queries.batch(); ++sequence) {
    for (int64_t head = 0; head < call.query.heads; ++head) {
      const MaskReader mask(call, sequence, head);
      for (int64_t query = 0; query < call.queries.len(sequence); ++query) {
        weights.clear();
        for (int64_t key = 0; key < call.keys.len(sequence); ++key) {
          weights.push_back(
              Biased(mask.Bias(query, key), [&] { return score(sequence, head, query, key); }));
        }
        Softmax(weights);
        SumWeightedValues(call, sequence, head, query, weights, outputs);
        StoreWeights(call, sequence, head, query, weights, outputs);
      }
    }
  }
}

double Dot(const Call& call, int64_t sequence, int64_t head, int64_t query, int64_t key) {
  const std::byte* q = call.query.at(call.queries, call.dtype, sequence, head, query);
  const std::byte* k = call.key.at(call.keys, call.dtype, sequence, head, key);
  double dot = 0;
  for (int64_t d = 0; d < call.query.dim; ++d) {
    dot += static_cast<double>(ReadValue(q, call.dtype, d)) *
           static_cast<double>(ReadValue(k, call.dtype, d));
  }
  return dot;
}

}  // namespace attendant::attention::reference
