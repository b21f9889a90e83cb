// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/pooling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/core/check.h"

namespace attendant {
namespace {

// Sums of so many tokens are f32. Were all of them, a mean of 32,768 would be off by 3e-6 of its
// length.
constexpr int64_t kBlockTokens = 64;
constexpr int64_t kColumns = 256;  // so many sums at a time

// sums[j] = sum over t of weight(t) * tokens[t, j]
template <typename Weight>
void SumTokens(TensorView<const float, 2> tokens, int64_t dims, Weight weight, float* sums) {
  const int64_t len = tokens.dim(0);
  std::array<double, kColumns> totals;
  std::array<float, kColumns> block;
  for (int64_t first = 0; first < dims; first += kColumns) {
    const auto columns = static_cast<size_t>(std::min(kColumns, dims - first));
    totals.fill(0.0);
    for (int64_t begin = 0; begin < len; begin += kBlockTokens) {
      block.fill(0.0f);
      for (int64_t t = begin; t < std::min(begin + kBlockTokens, len); ++t) {
        const float* row = tokens.row(t) + first;
        for (size_t j = 0; j < columns; ++j) block[j] += weight(t) * row[j];
      }
      for (size_t j = 0; j < columns; ++j) totals[j] += static_cast<double>(block[j]);
    }
    for (size_t j = 0; j < columns; ++j) {
      sums[first + static_cast<int64_t>(j)] = static_cast<float>(totals[j]);
    }
  }
}

// pooled[j] = sum over t of states[t, j] / len
void PoolMean(TensorView<const float, 2> states, int64_t dims, float* pooled) {
  SumTokens(
      states, dims, [](int64_t) { return 1.0f; }, pooled);
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

// pooled[j] = sum over t of weight[t] * tokens[t, j] / sum of the weights
void PoolWeightedMean(TensorView<const float, 2> tokens, std::span<const int32_t> positions,
                      float* pooled) {
  const int64_t hidden = tokens.dim(1);
  const auto weight = [positions](int64_t t) {
    return static_cast<float>(positions[static_cast<size_t>(t)]) + 1.0f;
  };
  SumTokens(tokens, hidden, weight, pooled);
  double weights = 0;
  for (int64_t t = 0; t < tokens.dim(0); ++t) weights += static_cast<double>(weight(t));
  for (int64_t j = 0; j < hidden; ++j) pooled[j] /= static_cast<float>(weights);
}

// `tokens` [those that are left, hidden], at least one.
void PoolKind(Pooling kind, TensorView<const float, 2> tokens, std::span<const int32_t> positions,
              float* pooled) {
  if (kind == Pooling::kWeightedMean) return PoolWeightedMean(tokens, positions, pooled);
  const bool sqrt_len = kind == Pooling::kMeanSqrtLen;
  PoolSequence(tokens, {.pooling = sqrt_len ? Pooling::kMean : kind}, pooled);
  if (!sqrt_len) return;
  const float scale = std::sqrt(static_cast<float>(tokens.dim(0)));
  for (int64_t j = 0; j < tokens.dim(1); ++j) pooled[j] *= scale;
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
    case Pooling::kMeanSqrtLen:
    case Pooling::kWeightedMean:
      ATTENDANT_CHECK(false);
  }
  if (spec.normalize) NormalizeL2({pooled, static_cast<size_t>(dims)});
}

void PoolTokens(TensorView<const float, 2> states, std::span<const int32_t> positions,
                std::span<const Pooling> kinds, int32_t first_position, float* pooled) {
  const int64_t len = states.dim(0), hidden = states.dim(1);
  const int64_t first =
      std::lower_bound(positions.begin(), positions.end(), first_position) - positions.begin();
  for (const Pooling kind : kinds) {
    if (first < len) {
      PoolKind(kind, {states.row(first), {len - first, hidden}},
               positions.subspan(static_cast<size_t>(first)), pooled);
    } else if (kind == Pooling::kCls) {
      std::copy_n(states.row(0), hidden, pooled);
    } else {
      std::fill_n(pooled, hidden, 0.0f);
    }
    pooled += hidden;
  }
}

void PoolSpan(TensorView<const float, 2> states, std::span<const int32_t> positions,
              std::span<const Pooling> kinds, TokenSpan span, float* pooled) {
  const auto row_of = [&](int32_t position) -> int64_t {
    return std::lower_bound(positions.begin(), positions.end(), position) - positions.begin();
  };
  const int64_t first = row_of(span.begin), end = row_of(span.end), hidden = states.dim(1);
  for (const Pooling kind : kinds) {
    if (first < end) {
      PoolKind(kind, {states.row(first), {end - first, hidden}},
               positions.subspan(static_cast<size_t>(first)), pooled);
    } else {
      std::fill_n(pooled, hidden, 0.0f);
    }
    pooled += hidden;
  }
}

void NormalizeL2(std::span<float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  const float scale = static_cast<float>(1.0 / std::max(std::sqrt(squares), 1e-12));
  for (float& value : values) value *= scale;
}

}  // namespace attendant
