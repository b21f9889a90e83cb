// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/types/sequence.h"
#include "client/types/tensor.h"
#include "client/types/timings.h"

namespace attendant::client {

// The facts of one sequence of a request, after tokenizing.
struct SequenceInfo {
  int64_t tokens = 0;                 // its rows in last_hidden_state
  bool truncated = false;             // it was longer and has been cut
  int64_t tokens_seen = 0;            // before it was cut
  std::vector<TokenSpan> spans = {};  // of its rows in `pooled`; empty: it has one row
  // [tokens] when asked for, else empty. A string is empty for an id that the tokenizer lacks.
  std::vector<int32_t> token_ids = {};
  std::vector<std::string> token_strings = {};
  // [tokens] when asked for, else empty. The place of each token in its text: code points [first,
  // second), the prompt included; (0, 0) for a special token.
  std::vector<std::pair<int32_t, int32_t>> token_offsets = {};
};

// The weights of one sequence, by ascending id.
struct SparseVector {
  std::vector<int32_t> ids = {};
  std::vector<float> weights = {};
  std::vector<std::string> token_strings = {};  // [ids] with EncodeRequest::token_strings
};

// The tokens that are likely at the mask tokens of one sequence, the likeliest first.
struct MaskPredictions {
  std::vector<int32_t> mask_tokens = {};        // from 0: where the masks stand
  Tensor scores = {};                           // [masks, k]
  std::vector<int32_t> token_ids = {};          // [masks, k]
  std::vector<std::string> token_strings = {};  // likewise, with EncodeRequest::token_strings
};

// The words of one sequence and how much its first token attends to each.
struct WordWeights {
  std::vector<std::string> words = {};
  std::vector<float> weights = {};  // [words]
};

// The vectors of one sequence.
struct MultiVector {
  std::vector<int32_t> tokens = {};  // from 0: the token of each vector
  Tensor vectors = {};               // [tokens, dims]
};

// The answer to an EncodeRequest. Outputs that were not asked for are empty. Tensors with a row for
// each token have SequenceInfo::tokens rows of each sequence, in the order of the request.
struct EncodeResult {
  std::string model;
  std::vector<SequenceInfo> sequences;  // in the order of the request
  Tensor last_hidden_state;             // [tokens, hidden], sequence after sequence
  // [sequences, dims], or [sequences, bytes]; quantized, integers as they come. With late chunking
  // a row for each span, sequence after sequence.
  Tensor pooled;
  Tensor pooled_scales;  // [rows of pooled], of kInt8: an embedding is about its scale x its row
  Tensor scores;         // [sequences, labels]
  std::vector<SparseVector> sparse;        // [sequences]
  std::vector<MaskPredictions> fill_mask;  // [sequences]
  Tensor token_scores;                     // [tokens, labels], sequence after sequence
  std::vector<MultiVector> multi_vectors;  // [sequences]
  std::vector<WordWeights> words;          // [sequences]
  // [sequences], each [layers, heads, len, len]: a row for each query token, which sums to 1 over
  // the keys.
  std::vector<Tensor> attention_weights;
  Tensor hidden_states;  // [hidden_layers, tokens, hidden]
  Timings timings;
};

}  // namespace attendant::client
