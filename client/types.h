// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// What goes into a client and comes out of it. Shapes are named as everywhere in Attendant: `len`
// tokens of one sequence, `tokens` of all of a request's sequences, `hidden` values of a token.
namespace attendant::client {

// Token ids as the model takes them, special tokens included.
struct TokenIds {
  std::vector<int32_t> token_ids = {};       // [len]
  std::vector<int32_t> segment_ids = {};     // [len], or empty: all 0
  std::vector<uint8_t> attention_mask = {};  // [len], or empty: all 1; 0 hides a token
};

// UTF-8 text, or token ids.
using Sequence = std::variant<std::string, TokenIds>;

enum class Pooling { kModelDefault, kMean, kCls, kMax, kLast };

// Number format on the wire. Values always arrive here as float.
enum class DType { kF32, kBf16, kF16 };

enum class Truncation {
  kTextOnly,  // cut over-long text, refuse over-long ids
  kNone,      // refuse both
  kRight,     // cut both
};

// How to make one vector of a sequence.
struct PooledOptions {
  Pooling pooling = Pooling::kModelDefault;
  std::optional<bool> normalize = {};  // unset: as the model says
  int32_t dims = 0;                    // keep the first `dims`, before normalizing; 0 keeps all
};

// Whose attention weights to answer with: layers and heads counted from 0; empty lists mean all.
struct AttentionOptions {
  std::vector<int32_t> layers = {};
  std::vector<int32_t> heads = {};
};

struct EncodeRequest {
  std::string model = {};  // empty: the only model the server has
  std::vector<Sequence> sequences = {};
  bool last_hidden_state = false;
  std::optional<PooledOptions> pooled = {};
  std::optional<AttentionOptions> attention_weights = {};
  // Hidden states between the layers: 0 is what the first layer reads, i > 0 what the i-th made of
  // it.
  std::vector<int32_t> hidden_layers = {};
  bool token_ids = false;      // answer with the ids that each sequence became
  bool token_strings = false;  // and with what they stand for: "[CLS]", "##ing"
  DType dtype = DType::kF32;
  Truncation truncation = Truncation::kTextOnly;
  int32_t priority = 0;  // -100 to 100, higher is served first
};

// Row-major; values.size() is the product of shape.
struct Tensor {
  std::vector<int64_t> shape = {};
  std::vector<float> values = {};
};

struct SequenceInfo {
  int64_t tokens = 0;  // its rows in last_hidden_state
  bool truncated = false;
  std::vector<int32_t> token_ids = {};  // [tokens], when asked for
  // [tokens], when asked for; empty for an id that the model's tokenizer does not know.
  std::vector<std::string> token_strings = {};
};

// Where the time went inside the server, in microseconds.
struct Timings {
  int64_t tokenize_us = 0;
  int64_t queue_us = 0;
  int64_t compute_us = 0;
  int64_t total_us = 0;
};

struct EncodeResult {
  std::string model;
  std::vector<SequenceInfo> sequences;  // in the request's order
  Tensor last_hidden_state;             // [tokens, hidden], when asked for
  Tensor pooled;                        // [sequences, dims], when asked for
  // [layers, heads, tokens, tokens] of each sequence, when asked for; a row is a token that
  // attends.
  std::vector<Tensor> attention_weights;
  Tensor hidden_states;  // [hidden_layers, tokens, hidden], when asked for
  Timings timings;
};

struct EmbedOptions {
  std::string model = {};  // empty: the only model the server has
  PooledOptions pooled = {};
  DType dtype = DType::kF32;
};

struct ModelInfo {
  std::string name;
  std::string state;  // "loading", "ready", "failed" or "draining"
  std::string error;  // why it failed
  // Set once the model has loaded.
  std::string backend, isa, dtype, pooling;
  int64_t layers = 0, heads = 0, hidden = 0, vocab = 0;
  int64_t max_sequence_tokens = 0;  // the longest sequence of ids
  int64_t max_text_tokens = 0;      // the length that text is cut at
  bool normalize = false;
};

enum class ServingStatus { kUnknown, kServing, kNotServing };

}  // namespace attendant::client
