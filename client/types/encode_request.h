// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/types/sequence.h"
#include "client/types/tensor.h"

namespace attendant::client {

// The pooling of a sequence's hidden states into one vector. kModelDefault takes the model's own
// pooling.
enum class Pooling { kModelDefault, kMean, kCls, kMax, kLast, kMeanSqrtLen, kWeightedMean };

// The sequences that the server cuts to the model's limit. It refuses other long sequences.
enum class Truncation {
  kTextOnly,  // texts
  kNone,      // none
  kRight,     // texts and token ids
  kLeft,      // the same, cut on the left
};

// The text of a pair that is cut: the longer one first, or one alone. It says nothing about single
// texts and ids.
enum class PairTruncation { kLongestFirst, kOnlyFirst, kOnlySecond };

// The format of embeddings: numbers of EncodeRequest.dtype, or quantized. kInt8: rounded, with a
// scale for each. kBinary and kUbinary: a bit for each dimension, 1 above 0, eight to a byte, the
// first in its highest bit; a byte of kBinary is 128 less.
enum class EmbeddingFormat { kNumbers, kInt8, kBinary, kUbinary };

// The options of embeddings, applied in this order: pooling, dims, normalize, format.
struct PooledOptions {
  Pooling pooling = Pooling::kModelDefault;
  std::optional<bool> normalize = {};  // scale to length 1; unset: as the model says
  int32_t dims = 0;                    // keep the first `dims` before normalizing; 0 keeps all
  EmbeddingFormat format = EmbeddingFormat::kNumbers;
  // Late chunking: cut each sequence without spans of its own into spans of at most so many tokens.
  // 0: do not.
  int32_t chunk_tokens = 0;
};

// The function on a classifier's logits. kModelDefault: sigmoid for one label, softmax for several,
// unless the model says otherwise.
enum class ScoreActivation { kModelDefault, kNone, kSigmoid, kSoftmax };

// A weight for some ids of the vocabulary.
struct SparseOptions {
  int32_t top_k = 0;  // at most so many weights of a sequence, the largest; 0: all above zero
};

// The likeliest tokens at each mask token.
struct FillMaskOptions {
  int32_t top_k = 0;  // for each mask; 0: 5
  bool raw = false;   // logits, instead of probabilities
};

// The scores of each token.
struct TokenScoreOptions {
  bool raw = false;  // logits, instead of their softmax
};

// Layers and heads whose attention weights to answer with, counted from 0. An empty list means all.
struct AttentionOptions {
  std::vector<int32_t> layers = {};
  std::vector<int32_t> heads = {};
};

// One request: sequences, and the outputs to compute for each of them.
struct EncodeRequest {
  std::string model = {};     // empty: the only model of the server
  int64_t model_version = 0;  // of the model; 0: the highest that serves
  std::vector<Sequence> sequences = {};
  // Late chunking: embeddings of these spans, pooled from one pass, in place of one for the
  // sequence. [sequences], or empty: no sequence has any; an empty list: this one has none.
  std::vector<std::vector<TokenSpan>> spans = {};

  // The outputs to answer with; at least one.
  bool last_hidden_state = false;
  std::optional<PooledOptions> pooled = {};
  // Scores of a classifier, or of pairs by late interaction (ColBERT, BGE-M3). Not together with
  // `pooled`.
  std::optional<ScoreActivation> scores = {};
  // Outputs of the model's heads on tokens (ModelInfo::tasks).
  std::optional<SparseOptions> sparse = {};
  std::optional<FillMaskOptions> fill_mask = {};
  std::optional<TokenScoreOptions> token_scores = {};
  bool multi_vector = false;
  bool word_weights = false;  // by attention, as BM42 has them; not with `attention_weights`
  std::optional<AttentionOptions> attention_weights = {};
  // Hidden states: 0 is the input of the first layer, i > 0 the output of layer i.
  std::vector<int32_t> hidden_layers = {};
  bool token_ids = false;      // the ids of each sequence
  bool token_strings = false;  // and their strings: "[CLS]", "##ing"; also of `sparse`, `fill_mask`
  bool token_offsets = false;  // of texts, where the model's tokenizer tells; else it is refused

  DType dtype = DType::kF32;  // of the tensors in the answer, on the wire
  Truncation truncation = Truncation::kTextOnly;
  PairTruncation pair_truncation = PairTruncation::kLongestFirst;
  // The model's prompt that goes before each text, or into a pair's chat template. Unset: its
  // default one, if it has one; empty: none.
  std::optional<std::string> prompt_name = {};
  int32_t priority = 0;  // -100 to 100; higher is served first
};

// The options of Client::Embed.
struct EmbedOptions {
  std::string model = {};     // empty: the only model of the server
  int64_t model_version = 0;  // of the model; 0: the highest that serves
  PooledOptions pooled = {};
  DType dtype = DType::kF32;  // on the wire
};

}  // namespace attendant::client
