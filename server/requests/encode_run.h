// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/batching/request.h"
#include "server/metrics/server_metrics.h"
#include "server/models/encoder_model.h"
#include "server/models/model_registry.h"
#include "server/requests/memory_budgets.h"
#include "server/requests/ticket.h"

namespace attendant {

// Token ids as a client sends them: 64-bit until they are checked.
struct IdsInput {
  std::vector<int64_t> token_ids;       // [len]
  std::vector<int64_t> segment_ids;     // [len], or empty: all 0
  std::vector<uint8_t> attention_mask;  // [len], or empty: all 1
};

enum class Truncation { kTextOnly, kNone, kRight };

// A request of any protocol, in the server's own words. Every protocol translates to this and back.
struct EncodeInput {
  Method method = Method::kEncode;
  std::string model;
  // The KServe name it came by, for that name's batch statistics.
  std::optional<ServedName> served_name;
  std::vector<std::variant<std::string, IdsInput>> sequences;  // text or ids, each
  bool last_hidden_state = false;
  bool pooled = false;
  std::optional<Pooling> pooling;  // unset: as the model says
  std::optional<bool> normalize;   // unset: as the model says
  int64_t dims = 0;
  bool attention_weights = false;
  std::vector<int32_t> attention_layers;  // empty: all
  std::vector<int32_t> attention_heads;   // empty: all
  std::vector<int32_t> hidden_layers;
  bool token_strings = false;
  Truncation truncation = Truncation::kTextOnly;
  int priority = 0;
  absl::Time deadline = absl::InfiniteFuture();
};

struct EncodedSequence {
  std::vector<int32_t> token_ids;          // [len], after truncation, masked ones included
  std::vector<uint8_t> attention_mask;     // [len], or empty: all 1
  std::vector<std::string> token_strings;  // [len], or empty: not asked for
  bool truncated = false;
  // As the batcher gave it: hidden states and weights are of unmasked tokens only.
  SequenceResult result;
};

struct EncodeOutput {
  std::vector<EncodedSequence> sequences;
  LayerSelection layers;
  int64_t hidden = 0;
  absl::Duration tokenize, queue, compute;
};

// Writes a sequence's hidden states `values` [unmasked tokens, hidden] as [len, hidden] with zero
// rows where the mask is 0. `rows` has space for len * hidden values.
void ScatterRows(const EncodedSequence& sequence, int64_t hidden, const float* values, float* rows);

// What one request may ask for, whatever the protocol.
struct EncodeLimits {
  int64_t max_request_sequences = 4096;
  int64_t max_response_bytes = int64_t{64} << 20;          // of tensors, as f32
  int64_t max_attention_weight_bytes = int64_t{32} << 20;  // of those tensors, likewise
};

// The way of every request between a protocol and the batcher: find the model, tokenize, validate,
// drop masked tokens, submit, and on the way back gather, count and time. Thread-safe.
class EncodePipeline {
 public:
  // What is passed by reference must outlive the pipeline.
  EncodePipeline(ModelRegistry& models, ServerMetrics& metrics, MemoryBudgets& budgets,
                 const EncodeLimits& limits = {});

  // Accounts for a request's message. RESOURCE_EXHAUSTED when all that is pending takes too much.
  absl::StatusOr<ByteBudget::Share> TakeRequest(const std::string& model, size_t bytes);

  // Calls `done` exactly once: inside Encode when the request is refused before it is queued, else
  // later from the completion executor. Counts nothing: the protocol reports the end of a request
  // to Finish. Before anything is computed `hold` is given the answer's share of the memory, to be
  // kept until the answer is written; it is called inside Encode, before `done`.
  Ticket Encode(EncodeInput input, absl::FunctionRef<void(ByteBudget::Share)> hold,
                absl::AnyInvocable<void(absl::StatusOr<EncodeOutput>)> done);

  // Counts one request and its phases. `total` runs from its arrival until its answer was handed to
  // gRPC; `serialize` is the part spent making the answer. `output` is null for a failed request.
  void Finish(Method method, const std::string& model, const absl::Status& status,
              const EncodeOutput* output, absl::Duration serialize, absl::Duration total);

  ModelRegistry& models() { return models_; }
  const EncodeLimits& limits() const { return limits_; }

 private:
  ModelRegistry& models_;
  ServerMetrics& metrics_;
  MemoryBudgets& budgets_;
  const EncodeLimits limits_;
};

}  // namespace attendant
