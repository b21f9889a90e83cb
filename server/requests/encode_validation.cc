// SPDX-License-Identifier: Apache-2.0
#include "server/requests/encode_validation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/packed_batch.h"
#include "kernels/core/status_macros.h"
#include "server/requests/encode_output.h"

namespace attendant {
namespace {

constexpr int kMaxPriority = 100;

// What a short string takes in memory.
constexpr int64_t kStringBytes = 40;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

int64_t Size(const auto& container) { return static_cast<int64_t>(container.size()); }

absl::Status CheckRequest(const EncoderModel& model, const EncodeLimits& limits,
                          const EncodeInput& input) {
  if (input.sequences.empty()) return Invalid("the request has no sequences");
  if (Size(input.sequences) > limits.max_request_sequences) {
    return Invalid("the request has ", input.sequences.size(), " sequences, the limit is ",
                   limits.max_request_sequences);
  }
  if (input.priority < -kMaxPriority || input.priority > kMaxPriority) {
    return Invalid("priority is ", input.priority, ", it must be from ", -kMaxPriority, " to ",
                   kMaxPriority);
  }
  if (input.dims < 0 || input.dims > model.config().hidden) {
    return Invalid("dims is ", input.dims, ", it must be from 0 to the model's hidden size ",
                   model.config().hidden);
  }
  return absl::OkStatus();
}

SequenceOutputs ChooseOutputs(const EncoderModel& model, const EncodeInput& input) {
  SequenceOutputs outputs{.last_hidden_state = input.last_hidden_state};
  const bool other_tensors =
      input.last_hidden_state || input.attention_weights || !input.hidden_layers.empty();
  if (input.pooled || !other_tensors) {
    outputs.pooling = input.pooling.value_or(model.sentence.pooling);
    outputs.normalize = input.normalize.value_or(model.sentence.normalize);
    outputs.dims = input.dims == 0 ? model.config().hidden : input.dims;
  }
  return outputs;
}

absl::Status CheckTable(absl::string_view field, size_t index, std::span<const int64_t> values,
                        int64_t limit) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      return Invalid("sequence ", index, ": ", field, "[", i, "] is ", values[i],
                     ", it must be from 0 to ", limit - 1);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSameLength(absl::string_view field, size_t index, size_t values, size_t len) {
  if (values == 0 || values == len) return absl::OkStatus();
  return Invalid("sequence ", index, ": ", field, " has ", values, " values, token_ids has ", len);
}

absl::Status CheckIds(const EncoderConfig& config, size_t index, const IdsInput& ids) {
  const size_t len = ids.token_ids.size();
  if (len == 0) return Invalid("sequence ", index, ": token_ids is empty");
  ATTENDANT_RETURN_IF_ERROR(CheckSameLength("segment_ids", index, ids.segment_ids.size(), len));
  ATTENDANT_RETURN_IF_ERROR(
      CheckSameLength("attention_mask", index, ids.attention_mask.size(), len));
  ATTENDANT_RETURN_IF_ERROR(CheckTable("token_ids", index, ids.token_ids, config.vocab));
  ATTENDANT_RETURN_IF_ERROR(
      CheckTable("segment_ids", index, ids.segment_ids, config.segment_types));
  return absl::OkStatus();
}

// Token ids of one sequence as the model takes them, before masked tokens are dropped.
struct Tokens {
  EncodedSequence encoded;
  std::vector<int32_t> segment_ids;  // [len]
};

absl::StatusOr<Tokens> FromIds(const EncoderModel& model, size_t index, Truncation truncation,
                               const IdsInput& ids) {
  if (absl::Status status = CheckIds(model.config(), index, ids); !status.ok()) return status;
  const int64_t limit = model.max_sequence_tokens;
  Tokens tokens;
  tokens.encoded.truncated = Size(ids.token_ids) > limit;
  if (tokens.encoded.truncated && truncation != Truncation::kRight) {
    return Invalid("sequence ", index, " has ", ids.token_ids.size(), " tokens, the limit is ",
                   limit);
  }
  const int64_t len = std::min(Size(ids.token_ids), limit);
  tokens.encoded.token_ids.assign(ids.token_ids.begin(), ids.token_ids.begin() + len);
  if (!ids.attention_mask.empty()) {
    tokens.encoded.attention_mask.assign(ids.attention_mask.begin(),
                                         ids.attention_mask.begin() + len);
  }
  tokens.segment_ids.resize(static_cast<size_t>(len));
  if (!ids.segment_ids.empty()) {
    std::copy_n(ids.segment_ids.begin(), len, tokens.segment_ids.begin());
  }
  return tokens;
}

absl::StatusOr<Tokens> FromText(const EncoderModel& model, size_t index, Truncation truncation,
                                const std::string& text) {
  if (model.tokenizer == nullptr) {
    return Invalid("sequence ", index, " is text, but model '", model.name,
                   "' takes token ids only: its checkpoint has no tokenizer.json");
  }
  absl::StatusOr<TokenizedText> tokenized = model.tokenizer->Tokenize(
      text,
      {.max_tokens = model.sentence.max_text_tokens, .truncate = truncation != Truncation::kNone});
  if (!tokenized.ok()) {
    return absl::Status(tokenized.status().code(),
                        absl::StrCat("sequence ", index, ": ", tokenized.status().message()));
  }
  Tokens tokens;
  tokens.encoded.token_ids = std::move(tokenized->token_ids);
  tokens.encoded.truncated = tokenized->truncated;
  tokens.segment_ids = std::move(tokenized->segment_ids);
  return tokens;
}

std::vector<std::string> TokenStringsOf(const EncoderModel& model, const EncodedSequence& sequence) {
  std::vector<std::string> strings(sequence.token_ids.size());
  if (model.tokenizer == nullptr) return strings;
  for (size_t i = 0; i < strings.size(); ++i) {
    strings[i] = std::string(model.tokenizer->TokenString(sequence.token_ids[i]));
  }
  return strings;
}

// Leaves masked tokens out; the others keep their positions.
SequenceInput Unmasked(const Tokens& tokens) {
  const EncodedSequence& encoded = tokens.encoded;
  SequenceInput input;
  for (size_t i = 0; i < encoded.token_ids.size(); ++i) {
    if (!encoded.attention_mask.empty() && encoded.attention_mask[i] == 0) continue;
    input.token_ids.push_back(encoded.token_ids[i]);
    input.positions.push_back(static_cast<int32_t>(i));
    input.segment_ids.push_back(tokens.segment_ids[i]);
  }
  return input;
}

int64_t AttentionBytes(const ValidRequest& request, const EncodedSequence& sequence) {
  const int64_t len = Size(sequence.token_ids);
  return request.output.layers.attention_maps() * len * len * static_cast<int64_t>(sizeof(float));
}

int64_t ResponseBytes(const ValidRequest& request, const EncodedSequence& sequence) {
  const int64_t len = Size(sequence.token_ids);
  int64_t values = request.outputs.dims + request.output.layers.hidden_values(len);
  if (request.outputs.last_hidden_state) values += len * request.output.hidden;
  int64_t bytes = values * static_cast<int64_t>(sizeof(float)) + AttentionBytes(request, sequence);
  for (const std::string& token : sequence.token_strings) bytes += kStringBytes + Size(token);
  return bytes;
}

// The back end's tables are indexed with what passes here, wherever it came from: a tokenizer too
// may say more than its checkpoint holds.
absl::Status CheckTables(const EncoderConfig& config, size_t index, const SequenceInput& input) {
  const absl::Status status =
      ValidateSequence(config, input.token_ids, input.positions, input.segment_ids);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("sequence ", index, ": ", status.message()));
}

// An answer that would be too large is refused while it has cost nothing yet.
absl::Status AddSequence(const EncoderConfig& config, const EncodeLimits& limits, Tokens tokens,
                         ValidRequest& request) {
  request.attention_bytes += AttentionBytes(request, tokens.encoded);
  if (request.attention_bytes > limits.max_attention_weight_bytes) {
    return Invalid("the attention weights asked for take ", request.attention_bytes,
                   " bytes up to sequence ", request.output.sequences.size(), ", the limit is ",
                   limits.max_attention_weight_bytes,
                   ": ask for fewer layers, heads or tokens in one request");
  }
  request.response_bytes += ResponseBytes(request, tokens.encoded);
  if (request.response_bytes > limits.max_response_bytes) {
    return Invalid("the outputs asked for take ", request.response_bytes, " bytes up to sequence ",
                   request.output.sequences.size(), ", the limit is ", limits.max_response_bytes,
                   ": ask for fewer sequences in one request");
  }
  SequenceInput input = Unmasked(tokens);
  if (input.len() > 0) {
    absl::Status status = CheckTables(config, request.output.sequences.size(), input);
    if (!status.ok()) return status;
    request.sequences.push_back(std::move(input));
  }
  request.output.sequences.push_back(std::move(tokens.encoded));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ValidRequest> ValidateRequest(const EncoderModel& model, const EncodeLimits& limits,
                                             EncodeInput& input) {
  const absl::Time start = absl::Now();
  if (absl::Status status = CheckRequest(model, limits, input); !status.ok()) return status;
  ValidRequest request;
  request.outputs = ChooseOutputs(model, input);
  absl::StatusOr<LayerSelection> layers = ChooseLayers(model.config(), input);
  if (!layers.ok()) return layers.status();
  request.output.layers = *std::move(layers);
  request.output.hidden = model.config().hidden;
  for (size_t i = 0; i < input.sequences.size(); ++i) {
    const auto sequence = std::exchange(input.sequences[i], std::string());
    const std::string* text = std::get_if<std::string>(&sequence);
    absl::StatusOr<Tokens> tokens =
        text != nullptr ? FromText(model, i, input.truncation, *text)
                        : FromIds(model, i, input.truncation, std::get<IdsInput>(sequence));
    if (!tokens.ok()) return tokens.status();
    if (input.token_strings) tokens->encoded.token_strings = TokenStringsOf(model, tokens->encoded);
    absl::Status added = AddSequence(model.config(), limits, *std::move(tokens), request);
    if (!added.ok()) return added;
  }
  request.output.tokenize = absl::Now() - start;
  return request;
}

}  // namespace attendant
