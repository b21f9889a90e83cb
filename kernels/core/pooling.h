// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/core/outputs.h"
#include "kernels/core/shape.h"

namespace attendant {

// Pools one sequence: states [len, hidden] -> pooled [dims of `spec`, or hidden].
// Sums run over the tokens in order, in blocks, so the result depends on the sequence alone.
// REQUIRES: len > 0, spec.pooling != kNone, IsPooledByBackEnds, spec.dims <= hidden.
void PoolSequence(TensorView<const float, 2> states, const SequenceOutputs& spec, float* pooled);

// The poolings of sentence-transformers beyond SequenceOutputs, of one sequence whose tokens stand
// at `positions` [len], in rising order: states [len, hidden] -> pooled [kinds, hidden]. Tokens
// before `first_position`, those of a prompt, are left out. Where no token is left, kCls gives the
// first one and the other kinds give zeros. REQUIRES: len > 0, no kind is kNone.
void PoolTokens(TensorView<const float, 2> states, std::span<const int32_t> positions,
                std::span<const Pooling> kinds, int32_t first_position, float* pooled);

// Tokens at the positions [begin, end) of a sequence.
struct TokenSpan {
  int32_t begin = 0, end = 0;

  friend bool operator==(const TokenSpan&, const TokenSpan&) = default;
};

// True if PoolSpan computes this pooling. False for the kinds that pick one token of a sequence.
constexpr bool IsPooledOverSpans(Pooling pooling) {
  return pooling == Pooling::kMean || pooling == Pooling::kMax ||
         pooling == Pooling::kMeanSqrtLen || pooling == Pooling::kWeightedMean;
}

// Pools the tokens in `span` alone, as PoolTokens does: states [len, hidden] -> pooled [kinds,
// hidden]. Zeros if the span has no token. REQUIRES: the kinds are IsPooledOverSpans.
void PoolSpan(TensorView<const float, 2> states, std::span<const int32_t> positions,
              std::span<const Pooling> kinds, TokenSpan span, float* pooled);

// x / max(|x|, 1e-12), as torch.nn.functional.normalize has it.
void NormalizeL2(std::span<float> values);

}  // namespace attendant
