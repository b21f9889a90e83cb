// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/pooling.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/check.h"

namespace attendant {
namespace {

// pooled[j] = sum over t of states[t, j] / len. Row by row, so that memory is read in order.
void PoolMean(TensorView<const float, 2> states, int64_t dims, float* pooled) {
  std::fill_n(pooled, dims, 0.0f);
  for (int64_t t = 0; t < states.dim(0); ++t) {
    const float* row = states.row(t);
    for (int64_t j = 0; j < dims; ++j) pooled[j] += row[j];
  }
  const float scale = 1.0f / static_cast<float>(states.dim(0));
  for (int64_t j = 0; j < dims; ++j) pooled[j] *= scale;
}

void PoolMax(TensorView<const float, 2> states, int64_t dims, float* pooled) {
  std::copy_n(states.row(0), dims, pooled);
  for (int64_t t = 1; t < states.dim(0); ++t) {
    const float* row = states.row(t);
    for (int64_t j = 0; j < dims; ++j) pooled[j] = std::max(pooled[j], row[j]);
  }
}

// x / max(|x|, 1e-12), as torch.nn.functional.normalize has it.
void NormalizeL2(int64_t dims, float* values) {
  double squares = 0;
  for (int64_t j = 0; j < dims; ++j) squares += static_cast<double>(values[j]) * values[j];
  const float scale = static_cast<float>(1.0 / std::max(std::sqrt(squares), 1e-12));
  for (int64_t j = 0; j < dims; ++j) values[j] *= scale;
}

}  // namespace

void PoolSequence(TensorView<const float, 2> states, const SequenceOutputs& spec, float* pooled) {
  const int64_t dims = spec.dims > 0 ? spec.dims : states.dim(1);
  ATTENDANT_CHECK(states.dim(0) > 0 && dims <= states.dim(1));
  switch (spec.pooling) {
    case Pooling::kMean:
      PoolMean(states, dims, pooled);
      break;
    case Pooling::kMax:
      PoolMax(states, dims, pooled);
      break;
    case Pooling::kCls:
      std::copy_n(states.row(0), dims, pooled);
      break;
    case Pooling::kLast:
      std::copy_n(states.row(states.dim(0) - 1), dims, pooled);
      break;
    case Pooling::kNone:
      ATTENDANT_CHECK(false);
  }
  if (spec.normalize) NormalizeL2(dims, pooled);
}

}  // namespace attendant
