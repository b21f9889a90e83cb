// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"

// The values that go into a client and come out of it. They are plain structs without locks: one
// thread at a time may change one.
//
// The names of sizes, as everywhere in Attendant: `len` is the tokens of one sequence, `tokens`
// those of all sequences of a request, `hidden` the values of one token. Tensors hold float,
// row-major.
namespace attendant::client {

struct TlsOptions {
  // Encrypt, and check the server's certificate against the authorities of the system.
  bool enabled = false;
  // PEM files. Each one given also enables TLS. A certificate and its key come together.
  std::string ca_file = {};    // authorities to check the server with, instead of the system's
  std::string cert_file = {};  // this client's certificate
  std::string key_file = {};   // the key of cert_file
};

struct ConnectOptions {
  std::string target = "127.0.0.1:8001";  // HOST:PORT, or any gRPC target
  TlsOptions tls = {};
  // A file with an API key, sent with each call; empty: none. Without TLS it travels unencrypted.
  std::string api_key_file = {};
  // The id of a W3C trace, 32 lower-case hexadecimal digits: each call is a span of it, and has a
  // request id. Empty: none.
  std::string trace_id = {};
  absl::Duration timeout = absl::Seconds(30);  // of each call; infinite is allowed
  // How often a call is tried, from 1 to 5, while the server's queue is full or the server cannot
  // be reached, is loading or is draining. The time between tries starts at 100 ms and doubles.
  // Requests above 4 MiB are tried once.
  int max_attempts = 1;
};

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

// How the hidden states of a sequence become one vector. kModelDefault takes the model's own way.
enum class Pooling { kModelDefault, kMean, kCls, kMax, kLast };

// Number format on the wire. The client converts from and to float; halves round to nearest even.
enum class DType { kF32, kBf16, kF16 };

// The sequences that the server cuts to the model's limit. It refuses other long sequences.
enum class Truncation {
  kTextOnly,  // texts
  kNone,      // none
  kRight,     // texts and token ids
};

struct PooledOptions {
  Pooling pooling = Pooling::kModelDefault;
  std::optional<bool> normalize = {};  // scale to length 1; unset: as the model says
  int32_t dims = 0;                    // keep the first `dims` before normalizing; 0 keeps all
};

// What is applied to a classifier's logits. kModelDefault: sigmoid for one label, softmax for
// several, unless the model says otherwise.
enum class ScoreActivation { kModelDefault, kNone, kSigmoid, kSoftmax };

// Layers and heads whose attention weights to answer with, counted from 0. An empty list means all.
struct AttentionOptions {
  std::vector<int32_t> layers = {};
  std::vector<int32_t> heads = {};
};

struct EncodeRequest {
  std::string model = {};  // empty: the only model of the server
  std::vector<Sequence> sequences = {};

  // The outputs to answer with; at least one.
  bool last_hidden_state = false;
  std::optional<PooledOptions> pooled = {};
  std::optional<ScoreActivation> scores = {};  // of a classifier; not together with `pooled`
  std::optional<AttentionOptions> attention_weights = {};
  // Hidden states between the layers: 0 is the input of the first layer, i > 0 the output of layer
  // i.
  std::vector<int32_t> hidden_layers = {};
  bool token_ids = false;      // the ids of each sequence
  bool token_strings = false;  // and their strings: "[CLS]", "##ing"

  DType dtype = DType::kF32;  // of the tensors in the answer, on the wire
  Truncation truncation = Truncation::kTextOnly;
  int32_t priority = 0;  // -100 to 100; higher is served first
};

struct Tensor {
  std::vector<int64_t> shape = {};
  std::vector<float> values = {};  // row-major; as many as the product of `shape`
};

struct SequenceInfo {
  int64_t tokens = 0;      // its rows in last_hidden_state
  bool truncated = false;  // it was longer and has been cut
  // [tokens] when asked for, else empty. A string is empty for an id that the tokenizer lacks.
  std::vector<int32_t> token_ids = {};
  std::vector<std::string> token_strings = {};
};

// Where the time of a request went inside the server, in microseconds.
struct Timings {
  int64_t tokenize_us = 0;  // reading and tokenizing
  int64_t queue_us = 0;     // from admission until the last sequence entered a batch
  int64_t compute_us = 0;   // in the back end, summed over the batches of its sequences
  int64_t total_us = 0;     // from the request's arrival to its answer
};

// Outputs that were not asked for are empty.
struct EncodeResult {
  std::string model;
  std::vector<SequenceInfo> sequences;  // in the order of the request
  Tensor last_hidden_state;             // [tokens, hidden], sequence after sequence
  Tensor pooled;                        // [sequences, dims]
  Tensor scores;                        // [sequences, labels]
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

struct ModelInfo {
  std::string name;
  std::string state;  // "loading", "ready", "failed" or "draining"
  std::string error;  // failed: the reason
  // Set once the model has loaded.
  std::string backend;  // "cpu", "cuda" or "reference"
  std::string isa;      // instruction set or GPU: "amx"
  std::string dtype;    // number format of the computation: "f32", "bf16", "int8", "f16" or "fp8"
  std::string pooling;  // "mean", "cls", "max" or "last"; empty if the model names none
  int64_t layers = 0, heads = 0, hidden = 0, vocab = 0;
  int64_t max_sequence_tokens = 0;  // longest sequence of ids
  int64_t max_text_tokens = 0;      // length at which texts are cut
  bool normalize = false;           // pooled embeddings have length 1 by default
  std::vector<std::string> labels;  // of a classifier's scores; a reranker has one
};

enum class ServingStatus { kUnknown, kServing, kNotServing };

}  // namespace attendant::client
