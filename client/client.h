// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/connect_options.h"

// A client of an Attendant server.
//
//   using attendant::client::Client;
//   absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = "127.0.0.1:8001"});
//   if (!client.ok()) return client.status();
//   absl::StatusOr<attendant::client::Tensor> embeddings =
//       (*client)->Embed({"A man is eating.", "Someone eats."});
//   // embeddings->shape is {2, 384}; embeddings->values holds 2 * 384 floats, row after row.
//
// Shapes are named as everywhere in Attendant: `len` tokens of one sequence, `tokens` of all of a
// request's sequences, `hidden` values of a token.
//
// Errors are the server's own status (its words are in attendant/v1/encoder.proto), UNAVAILABLE
// when the server cannot be reached, DEADLINE_EXCEEDED when ConnectOptions::timeout passed,
// INVALID_ARGUMENT for text that is not UTF-8 and INTERNAL for an answer that contradicts itself.
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

struct EncodeRequest {
  std::string model = {};  // empty: the only model the server has
  std::vector<Sequence> sequences = {};
  bool last_hidden_state = false;
  std::optional<PooledOptions> pooled = {};
  bool token_ids = false;  // answer with the ids that each sequence became
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

// Thread-safe. Calls that are still running when the client is destroyed are cancelled, and their
// callbacks have returned before the destructor does.
class Client {
 public:
  // Does not wait for the connection: an unreachable server shows at the first call. Fails when a
  // TLS file cannot be read.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ConnectOptions& options);
  ~Client();

  // Embeds any number of texts, in several requests when there are many. Returns [texts, dims].
  absl::StatusOr<Tensor> Embed(const std::vector<std::string>& texts,
                               const EmbedOptions& options = {});

  // One request.
  absl::StatusOr<EncodeResult> Encode(const EncodeRequest& request);

  // The same without waiting. `done` runs exactly once, on a gRPC thread or before EncodeAsync
  // returns; it must not block and must not destroy the client. REQUIRES: request.model is set.
  void EncodeAsync(const EncodeRequest& request,
                   absl::AnyInvocable<void(absl::StatusOr<EncodeResult>)> done);

  absl::StatusOr<std::vector<ModelInfo>> Models();

  // The name of the only model the server has; FAILED_PRECONDITION, listing them, when there are
  // several, and NOT_FOUND when there is none. Asked once, then remembered.
  absl::StatusOr<std::string> OnlyModel();

  // Service "" is the whole server; a model's name is a service of its own. NOT_FOUND: no such
  // service.
  absl::StatusOr<ServingStatus> Health(absl::string_view service = "");

  // Calls `changed` with the status now and after every change, until it returns false (then OK) or
  // the connection ends (then why). Has no deadline.
  absl::Status WatchHealth(absl::string_view service,
                           const std::function<bool(ServingStatus)>& changed);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::client
