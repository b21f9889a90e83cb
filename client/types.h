// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/connect_options.h"

// The values that go into a client and come out of it. They are plain structs without locks: one
// thread at a time may change one.
//
// The names of sizes, as everywhere in Attendant: `len` is the tokens of one sequence, `tokens`
// those of all sequences of a request, `hidden` the values of one token. Tensors hold float,
// row-major.
namespace attendant::client {

// Token ids as the model takes them, special tokens included. segment_ids are what Hugging Face
// calls token_type_ids.
struct TokenIds {
  std::vector<int32_t> token_ids = {};       // [len]
  std::vector<int32_t> segment_ids = {};     // [len], or empty: all 0
  std::vector<uint8_t> attention_mask = {};  // [len], or empty: all 1; 0 hides a token
};

// Two UTF-8 texts that become one sequence. For a reranker: the query and a passage.
struct TextPair {
  std::string first = {}, second = {};
};

// UTF-8 text, a pair of texts, or token ids.
using Sequence = std::variant<std::string, TextPair, TokenIds>;

// Tokens [begin, end) of a sequence, from 0, special tokens counted.
struct TokenSpan {
  int32_t begin = 0, end = 0;
};

// How the hidden states of a sequence become one vector. kModelDefault takes the model's own way.
enum class Pooling { kModelDefault, kMean, kCls, kMax, kLast, kMeanSqrtLen, kWeightedMean };

// Number format on the wire. The client converts from and to float; halves round to nearest even.
enum class DType { kF32, kBf16, kF16 };

// The sequences that the server cuts to the model's limit. It refuses other long sequences.
enum class Truncation {
  kTextOnly,  // texts
  kNone,      // none
  kRight,     // texts and token ids
  kLeft,      // the same, cut on the left
};

// The text of a pair that is cut: the longer one first, or one alone.
enum class PairTruncation { kLongestFirst, kOnlyFirst, kOnlySecond };

// How embeddings come: as numbers of EncodeRequest.dtype, or quantized. kInt8: rounded, with a
// scale for each. kBinary and kUbinary: a bit for each dimension, 1 above 0, eight to a byte, the
// first in its highest bit; a byte of kBinary is 128 less.
enum class EmbeddingFormat { kNumbers, kInt8, kBinary, kUbinary };

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

struct EncodeRequest {
  std::string model = {};  // empty: the only model of the server
  std::vector<Sequence> sequences = {};
  // Late chunking: embeddings of these spans, pooled from one pass, in place of one for the
  // sequence. [sequences], or empty: no sequence has any; an empty list: this one has none.
  std::vector<std::vector<TokenSpan>> spans = {};

  // The outputs to answer with; at least one.
  bool last_hidden_state = false;
  std::optional<PooledOptions> pooled = {};
  // Of a classifier; not together with `pooled`. Or of pairs, by the vectors of ColBERT and BGE-M3.
  std::optional<ScoreActivation> scores = {};
  // Of heads on tokens, as far as the model has them (ModelInfo::tasks).
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
  // The model's prompt that goes before each text. Unset: its default one, if it has one; empty:
  // none.
  std::optional<std::string> prompt_name = {};
  int32_t priority = 0;  // -100 to 100; higher is served first
};

struct Tensor {
  std::vector<int64_t> shape = {};
  std::vector<float> values = {};  // row-major; as many as the product of `shape`
};

struct SequenceInfo {
  int64_t tokens = 0;                 // its rows in last_hidden_state
  bool truncated = false;             // it was longer and has been cut
  int64_t tokens_seen = 0;            // before it was cut
  std::vector<TokenSpan> spans = {};  // of its rows in `pooled`; empty: it has one row
  // [tokens] when asked for, else empty. A string is empty for an id that the tokenizer lacks.
  std::vector<int32_t> token_ids = {};
  std::vector<std::string> token_strings = {};
  // Likewise, of texts: code points [first, second), the prompt's counted; 0, 0: a special token.
  std::vector<std::pair<int32_t, int32_t>> token_offsets = {};
};

// Where the time of a request went inside the server, in microseconds.
struct Timings {
  int64_t tokenize_us = 0;  // reading and tokenizing
  int64_t queue_us = 0;     // from admission until the last sequence entered a batch
  int64_t compute_us = 0;   // in the back end, summed over the batches of its sequences
  int64_t total_us = 0;     // from the request's arrival to its answer
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

// Outputs that were not asked for are empty.
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
  // For each sequence [layers, heads, len, len]. A row belongs to a token that attends, and its
  // values sum to 1.
  std::vector<Tensor> attention_weights;
  Tensor hidden_states;  // [hidden_layers, tokens, hidden]
  Timings timings;
};

struct EmbedOptions {
  std::string model = {};  // empty: the only model of the server
  PooledOptions pooled = {};
  DType dtype = DType::kF32;  // on the wire
};

struct ModelInfo {  // a model, or a version of one
  std::string name;
  int64_t version = 0;
  std::string state;  // "loading", "ready", "failed", "draining", "unloaded" or "idle"
  std::string error;  // failed: the reason
  // Set once the model has loaded.
  std::string backend;  // "cpu", "cuda" or "reference"
  std::string isa;      // instruction set or GPU: "amx"
  std::string dtype;    // number format of the computation: "f32", "bf16", "int8", "f16" or "fp8"
  // "mean", "cls", "max", "last", "mean_sqrt_len" or "weighted_mean"; of several, which are
  // concatenated, "cls+mean"
  std::string pooling;
  int64_t layers = 0, heads = 0, hidden = 0, vocab = 0;
  int64_t embedding_dims = 0;       // values of an embedding
  int64_t max_sequence_tokens = 0;  // longest sequence of ids
  int64_t max_text_tokens = 0;      // length at which texts are cut
  bool normalize = false;           // pooled embeddings have length 1 by default
  std::vector<std::string> labels;  // of a classifier's scores; a reranker has one, ColBERT none
  std::vector<std::string> prompt_names;
  std::string default_prompt_name;        // empty: none
  std::vector<std::string> tasks;         // "scores", "sparse", "fill_mask", ..
  std::vector<std::string> token_labels;  // of the scores of tokens
};

enum class ServingStatus { kUnknown, kServing, kNotServing };

}  // namespace attendant::client
