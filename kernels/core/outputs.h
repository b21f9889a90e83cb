// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/core/shape.h"

namespace attendant {

// The pooling of a sequence's token states [len, hidden] into one vector [hidden].
enum class Pooling : uint8_t {
  kNone,
  kMean,  // average of its tokens
  kCls,   // its first token
  kMax,   // largest value of each dimension
  kLast,  // its last token
  // The kinds that PoolTokens alone computes, no back end.
  kMeanSqrtLen,   // the sum of its tokens / sqrt(their number)
  kWeightedMean,  // average; a token at position p counts p + 1 times
};

// True if back ends compute this pooling, so that SequenceOutputs may have it.
constexpr bool IsPooledByBackEnds(Pooling pooling) {
  return pooling != Pooling::kMeanSqrtLen && pooling != Pooling::kWeightedMean;
}

// The outputs that one sequence of a batch asks for. Back ends compute the last states that these
// and LayerOutputs read, and may leave out others (cpu/encoder/last_rows.cc).
struct SequenceOutputs {
  bool last_hidden_state = false;
  Pooling pooling = Pooling::kNone;  // IsPooledByBackEnds
  bool normalize = false;  // divide by the L2 norm, after truncation; a zero vector stays zero
  int64_t dims = 0;        // keep the first `dims` dimensions of the pooled vector; 0 keeps all

  friend bool operator==(const SequenceOutputs&, const SequenceOutputs&) = default;
};

// The outputs of single layers that one sequence asks for, and the caller's memory for them: a
// session keeps no [heads, len, len] of its own. Layers and heads count from 0.
struct LayerOutputs {
  std::span<const int32_t> attention_layers;  // each of [0, layers)
  std::span<const int32_t> attention_heads;   // each of [0, heads)
  // The softmax of a layer's scores, as EncoderConfig has them: [attention_layers,
  // attention_heads, queries(len), len]; a row is a query and sums to 1. Keys that it does not
  // attend to have 0.
  float* attention_weights = nullptr;

  std::span<const int32_t> hidden_layers;  // each of [0, layers]: 0 is the first layer's input,
                                           // i > 0 is the i-th layer's output
  float* hidden_states = nullptr;          // [hidden_layers, len, hidden]

  int64_t attention_queries = 0;  // rows for the first so many tokens only; 0: for all

  int64_t queries(int64_t len) const {
    return attention_queries > 0 ? std::min(attention_queries, len) : len;
  }
};

struct OutputSpec {
  std::span<const SequenceOutputs> sequences;  // [batch]
  std::span<const LayerOutputs> layers = {};   // [batch], or empty: no sequence asks
};

// The results of a Run. The views point into the session and hold until its next Run. Rows that no
// sequence asked for have unspecified contents.
struct Outputs {
  TensorView<const float, 2> last_hidden_state;  // [tokens, hidden]
  TensorView<const float, 2> pooled;             // [batch, hidden]; row i fills its first `dims`
};

}  // namespace attendant
