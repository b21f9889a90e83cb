// SPDX-License-Identifier: Apache-2.0
#include "server/requests/encode_validation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/packed_batch.h"
#include "kernels/core/status_macros.h"
#include "server/requests/invalid.h"
#include "server/requests/outputs/late_scores.h"
#include "server/requests/outputs/lookup.h"
#include "server/requests/outputs/sequence_strings.h"
#include "server/requests/outputs/spans.h"
#include "server/requests/outputs/word_weights.h"
#include "server/requests/read_sequence.h"
#include "server/requests/request_run.h"
#include "server/requests/tasks.h"
#include "server/text/tokenizer.h"

namespace attendant {
namespace {

// The memory of a span: in the sequence, in the batcher's copy of it and in the answer.
constexpr int64_t kSpanBytes = 3 * sizeof(TokenSpan);

int64_t Size(const auto& container) { return static_cast<int64_t>(container.size()); }

absl::Status CheckRequest(const EncodeLimits& limits, const EncodeInput& input) {
  if (input.sequences.empty()) return Invalid("the request has no sequences");
  const int64_t sequences = input.compares() ? Size(input.query_of) : Size(input.sequences);
  if (sequences > limits.max_request_sequences) {
    return Invalid("the request has ", sequences, " sequences, the limit is ",
                   limits.max_request_sequences);
  }
  return CheckPriority(input.priority);
}

absl::Status CheckScores(const EncoderModel& model, const EncodeInput& input) {
  if (!input.scores || input.compares()) return absl::OkStatus();
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

// The modules behind the pooling take as many values as the model's own poolings give.
absl::Status CheckWidths(const EncoderModel& model, const EncodeInput& input, int64_t pooled,
                         int64_t embedding) {
  const int64_t taken = model.sentence.head.InputWidth();
  if (taken != 0 && taken != pooled) {
    return Invalid("pooling gives ", pooled, " values, the model's modules behind it take ", taken);
  }
  if (input.dims >= 0 && input.dims <= embedding) return absl::OkStatus();
  return Invalid("the embedding has ", embedding, " dimensions, it cannot be cut to ", input.dims);
}

// Fills in how the pooled vectors are made: by the back end where it can, else by the runner and
// the run.
absl::Status ChoosePooling(const EncoderModel& model, const EncodeInput& input, bool has_prompt,
                           EncodeWork& work, EncodeOutput& output) {
  const SentenceSettings& sentence = model.sentence;
  std::vector<Pooling> poolings = sentence.poolings;
  if (input.pooling.has_value()) poolings = {*input.pooling};
  ATTENDANT_RETURN_IF_ERROR(CheckSpans(input, true, poolings));
  const int64_t width = Size(poolings) * model.config().hidden;
  const int64_t embedding = sentence.head.OutputWidth(width);
  ATTENDANT_RETURN_IF_ERROR(CheckWidths(model, input, width, embedding));
  output.outputs.pooling = poolings.front();
  output.outputs.normalize = input.normalize.value_or(sentence.normalize);
  output.outputs.dims = input.dims == 0 ? embedding : input.dims;
  work.outputs = output.outputs;
  const bool by_runner = poolings.size() > 1 || !IsPooledByBackEnds(poolings.front()) ||
                         (has_prompt && !sentence.include_prompt) || input.wants_spans();
  if (!by_runner && sentence.head.empty()) return absl::OkStatus();
  output.pooled_width = width;
  work.outputs.normalize = false;
  work.outputs.dims = 0;
  if (!by_runner) return absl::OkStatus();
  work.outputs.pooling = Pooling::kNone;
  work.token_poolings = std::move(poolings);
  return absl::OkStatus();
}

absl::Status ChooseOutputs(const EncoderModel& model, const EncodeInput& input, bool has_prompt,
                           EncodeWork& work, EncodeOutput& output) {
  if (input.compares()) {
    ChooseVectors(model, input, work, output);
    return absl::OkStatus();
  }
  output.outputs.last_hidden_state = input.last_hidden_state;
  const bool other_tensors = input.wants_internals() || !input.tasks.empty();
  if (!input.scores && (input.pooled || !other_tensors)) {
    return ChoosePooling(model, input, has_prompt, work, output);
  }
  ATTENDANT_RETURN_IF_ERROR(CheckSpans(input, false, {}));
  if (input.scores) {
    output.outputs.pooling = model.classifier->pooling;
    output.outputs.dims = model.config().hidden;
    output.scores = input.score_activation.value_or(model.classifier->scores);
  }
  work.outputs = output.outputs;
  return absl::OkStatus();
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
  LayerRequest& asked = input.layers;
  const int64_t count = config.layers;
  ATTENDANT_RETURN_IF_ERROR(
      CheckNumbers("attention_weights.layers", asked.attention_layers, count, count, "layers"));
  ATTENDANT_RETURN_IF_ERROR(CheckNumbers("attention_weights.heads", asked.attention_heads,
                                         config.heads, config.heads, "heads"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckNumbers("hidden_layers", asked.hidden_layers, count + 1, count, "layers"));
  LayerSelection layers;
  layers.hidden_layers = std::move(asked.hidden_layers);
  if (input.attention_weights) {
    layers.attention_layers = OrAll(std::move(asked.attention_layers), count);
    layers.attention_heads = OrAll(std::move(asked.attention_heads), config.heads);
  }
  return layers;
}

// A decoder's classifier reads the last token that is no padding. Under a causal mask the tokens
// behind it change nothing before them, so they may be masked.
absl::Status MaskPadding(const EncoderModel& model, EncodedSequence& sequence) {
  const std::optional<int32_t>& id = model.classifier->padding_id;
  const size_t len = sequence.token_ids.size();
  size_t end = len;
  bool unmasked = false;
  while (end > 1 && (sequence.masked(end - 1) || sequence.token_ids[end - 1] == id)) {
    --end;
    unmasked = unmasked || !sequence.masked(end);
  }
  if (!unmasked) return absl::OkStatus();
  if (!model.config().causal) {
    return Invalid("it ends in the padding token, id ", *id, ", which model '", model.name,
                   "' attends to but does not score: leave it out");
  }
  sequence.attention_mask.resize(len, 1);
  std::fill(sequence.attention_mask.begin() + static_cast<std::ptrdiff_t>(end),
            sequence.attention_mask.end(), uint8_t{0});
  return absl::OkStatus();
}

// Leaves masked tokens out; the others keep their positions. Frees the segment ids.
SequenceInput TakeUnmasked(EncodedSequence& sequence) {
  const std::vector<int32_t> segment_ids = std::exchange(sequence.segment_ids, {});
  SequenceInput input;
  for (size_t i = 0; i < sequence.token_ids.size(); ++i) {
    if (sequence.masked(i)) continue;
    if (static_cast<int64_t>(i) < sequence.attended_tokens) ++input.keys;
    input.token_ids.push_back(sequence.token_ids[i]);
    input.positions.push_back(static_cast<int32_t>(i));
    input.segment_ids.push_back(segment_ids[i]);
  }
  return input;
}

// Of a sequence.
int64_t CountScores(const EncoderModel& model, const EncodeInput& input) {
  if (!input.scores) return 0;
  return input.compares() ? 1 : model.classifier->num_labels();
}

absl::Status CheckAttentionBytes(const EncodeLimits& limits, const EncodeOutput& output) {
  if (output.attention_bytes <= limits.max_attention_weight_bytes) return absl::OkStatus();
  const bool words = output.word_weights;
  return Invalid("the ", words ? "word weights" : "attention weights", " asked for take ",
                 output.attention_bytes, " bytes up to sequence ", output.sequences.size(),
                 ", the limit is ", limits.max_attention_weight_bytes, ": ask for fewer ",
                 words ? "" : "layers, heads or ", "tokens in one request");
}

// Adds what the answer for `sequence` takes, and `counted_bytes` that are counted already. An
// answer that would be too large is refused while it has cost nothing yet.
absl::Status CountResponse(const EncodeLimits& limits, const EncodedSequence& sequence,
                           int64_t labels, int64_t counted_bytes, EncodeOutput& output) {
  constexpr auto kValueBytes = static_cast<int64_t>(sizeof(float));
  const int64_t len = sequence.len();
  const int64_t attention_bytes = output.layers.attention_values(len) * kValueBytes;
  output.attention_bytes += attention_bytes;
  ATTENDANT_RETURN_IF_ERROR(CheckAttentionBytes(limits, output));
  const int64_t spans = Size(sequence.rare_outputs().spans);
  int64_t values = std::max(output.outputs.dims, output.pooled_width) * std::max<int64_t>(spans, 1);
  values += labels + output.layers.hidden_values(len, output.hidden);
  if (output.outputs.last_hidden_state) values += len * output.hidden;
  output.response_bytes +=
      values * kValueBytes + spans * kSpanBytes + attention_bytes + counted_bytes;
  output.response_bytes +=
      Size(sequence.rare_outputs().token_offsets) * int64_t{sizeof(TokenOffset)};
  if (output.response_bytes <= limits.max_response_bytes) return absl::OkStatus();
  return Invalid("the outputs asked for take ", output.response_bytes, " bytes up to sequence ",
                 output.sequences.size(), ", the limit is ", limits.max_response_bytes,
                 ": ask for fewer sequences in one request");
}

// Validates one request: Start, then Add for each of its sequences in their order, then Take.
class EncodeValidation {
 public:
  EncodeValidation(const EncoderModel& model, const EncodeLimits& limits, EncodeInput& input,
                   EncodeOutput& output)
      : model_(model),
        limits_(limits),
        input_(input),
        output_(output),
        reading_{.model = model, .input = input},
        work_(request_.work.emplace<EncodeWork>()) {}

  // Checks and chooses what all sequences have in common.
  absl::Status Start() {
    ATTENDANT_RETURN_IF_ERROR(CheckRequest(limits_, input_));
    ATTENDANT_RETURN_IF_ERROR(CheckScores(model_, input_));
    ATTENDANT_ASSIGN_OR_RETURN(const Prompt* prompt, model_.prompts.Find(input_.prompt_name));
    reading_.prompt = prompt;
    ATTENDANT_RETURN_IF_ERROR(CheckLookup(reading_));
    ATTENDANT_RETURN_IF_ERROR(ChooseOutputs(model_, input_, prompt != nullptr, work_, output_));
    ATTENDANT_ASSIGN_OR_RETURN(output_.layers, ChooseLayers(model_.config(), input_));
    ATTENDANT_RETURN_IF_ERROR(ChooseWordWeights(model_, input_, output_));
    output_.token_strings = input_.token_strings;
    work_.layers = output_.layers;
    work_.hidden = output_.hidden = model_.config().hidden;
    ATTENDANT_RETURN_IF_ERROR(ChooseTasks(reading_, work_, output_));
    prompts_ = input_.compares() ? FindPairPrompts(model_) : PairPrompts{prompt, prompt};
    request_.priority = input_.priority;
    return absl::OkStatus();
  }

  absl::Status Add(size_t index) {
    const auto given =
        std::exchange(input_.sequences[index], std::string());  // freed when it is read
    reading_.prompt = IsQuery(index) ? prompts_.query : prompts_.document;
    if (const auto* text = std::get_if<std::string>(&given); text != nullptr && LooksUp(reading_)) {
      return AddLookedUp(index, *text);
    }
    return AddEncoded(index, given);
  }

  WorkRequest Take() { return std::move(request_); }

 private:
  bool IsQuery(size_t index) const { return index < input_.num_queries(); }

  // A sequence for which the encoder does not run.
  absl::Status AddLookedUp(size_t index, const std::string& text) {
    const int64_t top_k = work_.tasks.front().options.top_k;
    ATTENDANT_ASSIGN_OR_RETURN(EncodedSequence sequence, LookUp(reading_, index, text, top_k));
    const int64_t counted_bytes =
        CountLookupBytes(output_, sequence) + CountStringBytes(model_, output_, sequence);
    ATTENDANT_RETURN_IF_ERROR(CountResponse(limits_, sequence, 0, counted_bytes, output_));
    output_.sequences.push_back(std::move(sequence));
    return absl::OkStatus();
  }

  absl::Status AddEncoded(size_t index, const SequenceContent& given) {
    ATTENDANT_ASSIGN_OR_RETURN(EncodedSequence sequence, ReadSequence(reading_, index, given));
    if (input_.scores && !input_.compares()) {
      ATTENDANT_RETURN_IF_ERROR(InSequence(input_, index, MaskPadding(model_, sequence)));
    }
    SequenceInput unmasked = TakeUnmasked(sequence);
    unmasked.first_pooled = FirstPooled(model_, sequence);
    ATTENDANT_RETURN_IF_ERROR(AddSpans(index, sequence, unmasked));
    ATTENDANT_RETURN_IF_ERROR(CountOutputs(sequence, unmasked));
    if (input_.compares()) {
      ATTENDANT_RETURN_IF_ERROR(
          PlanVectors(model_, limits_, IsQuery(index), work_, unmasked, output_));
    }
    if (unmasked.len() > 0) {
      ATTENDANT_RETURN_IF_ERROR(AddWork(index, std::move(unmasked)));
    }
    output_.sequences.push_back(std::move(sequence));
    return absl::OkStatus();
  }

  absl::Status AddSpans(size_t index, EncodedSequence& sequence, SequenceInput& unmasked) {
    if (!input_.wants_spans()) return absl::OkStatus();
    ATTENDANT_ASSIGN_OR_RETURN(sequence.MutableRareOutputs().spans,
                               ChooseSpans(input_, index, sequence, unmasked.first_pooled));
    unmasked.spans = sequence.rare_outputs().spans;
    return absl::OkStatus();
  }

  absl::Status CountOutputs(const EncodedSequence& sequence, const SequenceInput& unmasked) {
    const int64_t counted_bytes = CountTaskBytes(model_, work_, output_, unmasked.token_ids) +
                                  CountWordBytes(model_, output_, sequence) +
                                  CountStringBytes(model_, output_, sequence);
    return CountResponse(limits_, sequence, CountScores(model_, input_), counted_bytes, output_);
  }

  // Adds a sequence for the back end, which indexes its tables with its numbers. They are checked
  // even after the tokenizer: it may know more tokens than its checkpoint holds.
  absl::Status AddWork(size_t index, SequenceInput unmasked) {
    ATTENDANT_RETURN_IF_ERROR(
        InSequence(input_, index,
                   ValidateSequence(model_.config(), unmasked.token_ids, unmasked.positions,
                                    unmasked.segment_ids)));
    unmasked.head_ns = CountHeadNs(model_, work_, unmasked);
    work_.sequences.push_back(std::move(unmasked));
    return absl::OkStatus();
  }

  const EncoderModel& model_;
  const EncodeLimits& limits_;
  EncodeInput& input_;  // loses what is read
  EncodeOutput& output_;
  SequenceReading reading_;
  PairPrompts prompts_;
  WorkRequest request_;
  EncodeWork& work_;  // in request_
};

}  // namespace

absl::StatusOr<WorkRequest> ValidateEncode(const EncoderModel& model, const EncodeLimits& limits,
                                           EncodeInput input, EncodeOutput& output) {
  EncodeValidation validation(model, limits, input, output);
  ATTENDANT_RETURN_IF_ERROR(validation.Start());
  for (size_t i = 0; i < input.sequences.size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(validation.Add(i));
  }
  return validation.Take();
}

}  // namespace attendant
