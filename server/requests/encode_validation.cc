// SPDX-License-Identifier: Apache-2.0
#include "server/requests/encode_validation.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/packed_batch.h"
#include "kernels/core/status_macros.h"
#include "server/requests/request_run.h"
#include "server/text/tokenizer.h"

namespace attendant {
namespace {

// What a short string takes in memory.
constexpr int64_t kStringBytes = 40;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// "sequence 3: " before the message.
absl::Status InSequence(size_t index, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("sequence ", index, ": ", status.message()));
}

int64_t Size(const auto& container) { return static_cast<int64_t>(container.size()); }

absl::Status CheckRequest(const EncoderModel& model, const EncodeLimits& limits,
                          const EncodeInput& input) {
  if (input.sequences.empty()) return Invalid("the request has no sequences");
  if (Size(input.sequences) > limits.max_request_sequences) {
    return Invalid("the request has ", input.sequences.size(), " sequences, the limit is ",
                   limits.max_request_sequences);
  }
  ATTENDANT_RETURN_IF_ERROR(CheckPriority(input.priority));
  if (input.dims >= 0 && input.dims <= model.config().hidden) return absl::OkStatus();
  return Invalid("dims is ", input.dims, ", it must be from 0 to the model's hidden size ",
                 model.config().hidden);
}

absl::Status CheckScores(const EncoderModel& model, const EncodeInput& input) {
  if (!input.scores) return absl::OkStatus();
  if (!model.classifier.has_value()) {
    return Invalid("scores need a classifier or reranker; model '", model.name,
                   "' has no such head");
  }
  const int64_t labels = model.classifier->num_labels();
  if (input.one_score && labels != 1) {
    return Invalid("model '", model.name, "' is no reranker: it has ", labels, " labels, not 1");
  }
  if (input.pooled) return Invalid("ask for pooled embeddings or for scores, not for both");
  return absl::OkStatus();
}

SequenceOutputs ChooseOutputs(const EncoderModel& model, const EncodeInput& input) {
  SequenceOutputs outputs{.last_hidden_state = input.last_hidden_state};
  if (input.scores) {
    outputs.pooling = model.classifier->pooling;
    outputs.dims = model.config().hidden;
    return outputs;
  }
  const bool other_tensors =
      input.last_hidden_state || input.attention_weights || !input.layers.hidden_layers.empty();
  if (input.pooled || !other_tensors) {
    outputs.pooling = input.pooling.value_or(model.sentence.pooling);
    outputs.normalize = input.normalize.value_or(model.sentence.normalize);
    outputs.dims = input.dims == 0 ? model.config().hidden : input.dims;
  }
  return outputs;
}

// Every number is in [0, count) and comes once: so no list is longer than the model.
absl::Status CheckNumbers(absl::string_view field, std::span<const int32_t> numbers, int64_t count,
                          int64_t model_count, absl::string_view what) {
  std::vector<bool> seen(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int32_t number = numbers[i];
    if (number < 0 || number >= count) {
      return Invalid(field, "[", i, "] is ", number, ", it must be from 0 to ", count - 1,
                     " (the model has ", model_count, " ", what, ")");
    }
    if (seen[static_cast<size_t>(number)]) return Invalid(field, "[", i, "] is ", number, " again");
    seen[static_cast<size_t>(number)] = true;
  }
  return absl::OkStatus();
}

std::vector<int32_t> OrAll(std::vector<int32_t> numbers, int64_t count) {
  if (!numbers.empty()) return numbers;
  std::vector<int32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The layers and heads that a request asks to look into, with "all" spelt out.
absl::StatusOr<LayerSelection> ChooseLayers(const EncoderConfig& config, EncodeInput& input) {
  LayerSelection layers = std::move(input.layers);
  const int64_t count = config.layers;
  ATTENDANT_RETURN_IF_ERROR(
      CheckNumbers("attention_weights.layers", layers.attention_layers, count, count, "layers"));
  ATTENDANT_RETURN_IF_ERROR(CheckNumbers("attention_weights.heads", layers.attention_heads,
                                         config.heads, config.heads, "heads"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckNumbers("hidden_layers", layers.hidden_layers, count + 1, count, "layers"));
  layers.hidden = config.hidden;
  if (input.attention_weights) {
    layers.attention_layers = OrAll(std::move(layers.attention_layers), count);
    layers.attention_heads = OrAll(std::move(layers.attention_heads), config.heads);
  }
  return layers;
}

absl::Status CheckTable(absl::string_view field, std::span<const int64_t> values, int64_t limit) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] < limit) continue;
    return Invalid(field, "[", i, "] is ", values[i], ", it must be from 0 to ", limit - 1);
  }
  return absl::OkStatus();
}

absl::Status CheckSameLength(absl::string_view field, size_t values, size_t len) {
  if (values == 0 || values == len) return absl::OkStatus();
  return Invalid(field, " has ", values, " values, token_ids has ", len);
}

absl::Status CheckIds(const EncoderConfig& config, const IdsInput& ids) {
  const size_t len = ids.token_ids.size();
  if (len == 0) return Invalid("token_ids is empty");
  ATTENDANT_RETURN_IF_ERROR(CheckSameLength("segment_ids", ids.segment_ids.size(), len));
  ATTENDANT_RETURN_IF_ERROR(CheckSameLength("attention_mask", ids.attention_mask.size(), len));
  ATTENDANT_RETURN_IF_ERROR(CheckTable("token_ids", ids.token_ids, config.vocab));
  return CheckTable("segment_ids", ids.segment_ids, config.segment_types);
}

absl::StatusOr<EncodedSequence> FromIds(const EncoderModel& model, size_t index,
                                        Truncation truncation, const IdsInput& ids) {
  ATTENDANT_RETURN_IF_ERROR(InSequence(index, CheckIds(model.config(), ids)));
  const int64_t limit = model.max_sequence_tokens;
  EncodedSequence sequence;
  sequence.truncated = Size(ids.token_ids) > limit;
  if (sequence.truncated && truncation != Truncation::kRight) {
    return Invalid("sequence ", index, " has ", ids.token_ids.size(), " tokens, the limit is ",
                   limit);
  }
  const int64_t len = std::min(Size(ids.token_ids), limit);
  sequence.token_ids.assign(ids.token_ids.begin(), ids.token_ids.begin() + len);
  if (!ids.attention_mask.empty()) {
    sequence.attention_mask.assign(ids.attention_mask.begin(), ids.attention_mask.begin() + len);
  }
  sequence.segment_ids.resize(static_cast<size_t>(len));
  if (!ids.segment_ids.empty()) {
    std::copy_n(ids.segment_ids.begin(), len, sequence.segment_ids.begin());
  }
  return sequence;
}

// A text or a pair of texts.
template <typename Tokenize>
absl::StatusOr<EncodedSequence> FromText(const EncoderModel& model, size_t index,
                                         Truncation truncation, Tokenize tokenize) {
  if (model.tokenizer == nullptr) {
    return Invalid("sequence ", index, " is text, but model '", model.name,
                   "' takes token ids only: its checkpoint has no tokenizer.json");
  }
  absl::StatusOr<TokenizedText> tokenized =
      tokenize(*model.tokenizer, TokenizerOptions{.max_tokens = model.sentence.max_text_tokens,
                                                  .truncate = truncation != Truncation::kNone});
  if (!tokenized.ok()) return InSequence(index, tokenized.status());
  EncodedSequence sequence;
  sequence.token_ids = std::move(tokenized->token_ids);
  sequence.segment_ids = std::move(tokenized->segment_ids);
  // A tokenizer may know segments that its model does not: then they make no difference.
  if (model.config().segment_types == 1) sequence.segment_ids.assign(sequence.token_ids.size(), 0);
  sequence.truncated = tokenized->truncated;
  return sequence;
}

absl::StatusOr<EncodedSequence> FromInput(const EncoderModel& model, size_t index,
                                          Truncation truncation, const SequenceContent& input) {
  if (const auto* ids = std::get_if<IdsInput>(&input))
    return FromIds(model, index, truncation, *ids);
  if (const auto* pair = std::get_if<TextPair>(&input)) {
    return FromText(model, index, truncation,
                    [pair](const Tokenizer& tokenizer, const auto& options) {
                      return tokenizer.TokenizePair(*pair->first, pair->second, options);
                    });
  }
  return FromText(model, index, truncation, [&](const Tokenizer& tokenizer, const auto& options) {
    return tokenizer.Tokenize(std::get<std::string>(input), options);
  });
}

std::vector<std::string> TokenStringsOf(const EncoderModel& model,
                                        const EncodedSequence& sequence) {
  std::vector<std::string> strings(sequence.token_ids.size());
  if (model.tokenizer == nullptr) return strings;
  for (size_t i = 0; i < strings.size(); ++i) {
    strings[i] = std::string(model.tokenizer->TokenString(sequence.token_ids[i]));
  }
  return strings;
}

// Leaves masked tokens out; the others keep their positions. Frees the segment ids.
SequenceInput TakeUnmasked(EncodedSequence& sequence) {
  const std::vector<int32_t> segment_ids = std::exchange(sequence.segment_ids, {});
  SequenceInput input;
  for (size_t i = 0; i < sequence.token_ids.size(); ++i) {
    if (sequence.masked(i)) continue;
    input.token_ids.push_back(sequence.token_ids[i]);
    input.positions.push_back(static_cast<int32_t>(i));
    input.segment_ids.push_back(segment_ids[i]);
  }
  return input;
}

// Adds what the answer for `sequence` takes. An answer that would be too large is refused while it
// has cost nothing yet.
absl::Status CountResponse(const EncodeLimits& limits, const EncodedSequence& sequence,
                           int64_t labels, EncodeOutput& output) {
  constexpr auto kValueBytes = static_cast<int64_t>(sizeof(float));
  const int64_t len = sequence.len();
  const int64_t attention_bytes = output.layers.attention_maps() * len * len * kValueBytes;
  output.attention_bytes += attention_bytes;
  if (output.attention_bytes > limits.max_attention_weight_bytes) {
    return Invalid("the attention weights asked for take ", output.attention_bytes,
                   " bytes up to sequence ", output.sequences.size(), ", the limit is ",
                   limits.max_attention_weight_bytes,
                   ": ask for fewer layers, heads or tokens in one request");
  }
  int64_t values = output.outputs.dims + labels + output.layers.hidden_values(len);
  if (output.outputs.last_hidden_state) values += len * output.layers.hidden;
  output.response_bytes += values * kValueBytes + attention_bytes;
  for (const std::string& token : sequence.token_strings) {
    output.response_bytes += kStringBytes + Size(token);
  }
  if (output.response_bytes <= limits.max_response_bytes) return absl::OkStatus();
  return Invalid("the outputs asked for take ", output.response_bytes, " bytes up to sequence ",
                 output.sequences.size(), ", the limit is ", limits.max_response_bytes,
                 ": ask for fewer sequences in one request");
}

}  // namespace

absl::StatusOr<PendingRequest> ValidateEncode(const EncoderModel& model, const EncodeLimits& limits,
                                              EncodeInput input, EncodeOutput& output) {
  ATTENDANT_RETURN_IF_ERROR(CheckRequest(model, limits, input));
  ATTENDANT_RETURN_IF_ERROR(CheckScores(model, input));
  output.outputs = ChooseOutputs(model, input);
  if (input.scores) output.scores = input.score_activation.value_or(model.classifier->scores);
  ATTENDANT_ASSIGN_OR_RETURN(output.layers, ChooseLayers(model.config(), input));
  const int64_t labels = input.scores ? model.classifier->num_labels() : 0;
  PendingRequest pending;
  pending.priority = input.priority;
  EncodeWork& work = pending.work.emplace<EncodeWork>();
  work.outputs = output.outputs;
  work.layers = output.layers;
  for (size_t i = 0; i < input.sequences.size(); ++i) {
    const auto given = std::exchange(input.sequences[i], std::string());  // freed when it is read
    ATTENDANT_ASSIGN_OR_RETURN(EncodedSequence sequence,
                               FromInput(model, i, input.truncation, given));
    if (input.token_strings) sequence.token_strings = TokenStringsOf(model, sequence);
    ATTENDANT_RETURN_IF_ERROR(CountResponse(limits, sequence, labels, output));
    SequenceInput unmasked = TakeUnmasked(sequence);
    if (unmasked.len() > 0) {
      // The back end indexes its tables with these numbers, and a tokenizer too may know more
      // tokens than its checkpoint holds.
      ATTENDANT_RETURN_IF_ERROR(
          InSequence(i, ValidateSequence(model.config(), unmasked.token_ids, unmasked.positions,
                                         unmasked.segment_ids)));
      work.sequences.push_back(std::move(unmasked));
    }
    output.sequences.push_back(std::move(sequence));
  }
  return pending;
}

}  // namespace attendant
