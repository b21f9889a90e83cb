// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/encoder/messages.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/protocols/encoder/pooled_message.h"
#include "server/protocols/encoder/spans.h"
#include "server/protocols/encoder/tasks.h"
#include "server/protocols/encoder/word_weights.h"
#include "server/protocols/wire/messages.h"
#include "server/requests/encode_types.h"

namespace attendant {
namespace {

absl::StatusOr<std::optional<Pooling>> PoolingFromProto(v1::Pooling pooling) {
  switch (pooling) {
    case v1::POOLING_UNSPECIFIED:
      return std::nullopt;
    case v1::POOLING_MEAN:
      return Pooling::kMean;
    case v1::POOLING_CLS:
      return Pooling::kCls;
    case v1::POOLING_MAX:
      return Pooling::kMax;
    case v1::POOLING_LAST:
      return Pooling::kLast;
    case v1::POOLING_MEAN_SQRT_LEN:
      return Pooling::kMeanSqrtLen;
    case v1::POOLING_WEIGHTED_MEAN:
      return Pooling::kWeightedMean;
    default:
      return UnknownEnum("outputs.pooled.pooling", pooling);
  }
}

absl::StatusOr<Truncation> TruncationFromProto(v1::Truncation truncation) {
  switch (truncation) {
    case v1::TRUNCATION_UNSPECIFIED:
      return Truncation::kTextOnly;
    case v1::TRUNCATION_NONE:
      return Truncation::kNone;
    case v1::TRUNCATION_RIGHT:
      return Truncation::kRight;
    case v1::TRUNCATION_LEFT:
      return Truncation::kLeft;
    default:
      return UnknownEnum("truncation", truncation);
  }
}

absl::StatusOr<PairTruncation> PairTruncationFromProto(v1::PairTruncation truncation) {
  switch (truncation) {
    case v1::PAIR_TRUNCATION_UNSPECIFIED:
      return PairTruncation::kLongestFirst;
    case v1::PAIR_TRUNCATION_ONLY_FIRST:
      return PairTruncation::kOnlyFirst;
    case v1::PAIR_TRUNCATION_ONLY_SECOND:
      return PairTruncation::kOnlySecond;
    default:
      return UnknownEnum("pair_truncation", truncation);
  }
}

absl::StatusOr<std::optional<ScoreActivation>> ActivationFromProto(v1::ScoreActivation activation) {
  switch (activation) {
    case v1::SCORE_ACTIVATION_UNSPECIFIED:
      return std::nullopt;
    case v1::SCORE_ACTIVATION_NONE:
      return ScoreActivation::kNone;
    case v1::SCORE_ACTIVATION_SIGMOID:
      return ScoreActivation::kSigmoid;
    case v1::SCORE_ACTIVATION_SOFTMAX:
      return ScoreActivation::kSoftmax;
    default:
      return UnknownEnum("outputs.scores.activation", activation);
  }
}

absl::Status SequencesFromProto(const v1::Sequences& sequences, const EncodeLimits& limits,
                                EncodeInput& input) {
  if (sequences.sequences_size() > limits.max_request_sequences) {
    return absl::InvalidArgumentError(absl::StrCat("the request has ", sequences.sequences_size(),
                                                   " sequences, the limit is ",
                                                   limits.max_request_sequences));
  }
  for (const v1::Sequence& sequence : sequences.sequences()) {
    if (sequence.has_text()) {
      input.sequences.emplace_back(sequence.text());
    } else if (sequence.has_pair()) {
      input.sequences.emplace_back(
          TextPair{.first = std::make_shared<const std::string>(sequence.pair().first()),
                   .second = sequence.pair().second()});
    } else if (sequence.has_ids()) {
      const v1::TokenIds& ids = sequence.ids();
      input.sequences.emplace_back(
          IdsInput{.token_ids = {ids.token_ids().begin(), ids.token_ids().end()},
                   .segment_ids = {ids.segment_ids().begin(), ids.segment_ids().end()},
                   .attention_mask = {ids.attention_mask().begin(), ids.attention_mask().end()}});
    } else {
      return absl::InvalidArgumentError(absl::StrCat("sequence ", input.sequences.size(),
                                                     " has neither text nor a pair nor ids"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCount(absl::string_view field, int64_t count, int64_t batch, int64_t seq) {
  return absl::InvalidArgumentError(absl::StrCat("padded.", field, " has ", count,
                                                 " values, batch x seq is ", batch, " x ", seq));
}

absl::Status CheckPadded(const v1::PaddedBatch& padded, const EncodeLimits& limits) {
  if (padded.batch() < 1 || padded.batch() > limits.max_request_sequences) {
    return absl::InvalidArgumentError(absl::StrCat("padded.batch is ", padded.batch(),
                                                   ", it must be from 1 to ",
                                                   limits.max_request_sequences));
  }
  // Compared by division: batch x seq may not fit in 64 bits.
  const int64_t count = padded.token_ids_size();
  if (padded.seq() < 1 || count % padded.batch() != 0 || count / padded.batch() != padded.seq()) {
    return CheckCount("token_ids", count, padded.batch(), padded.seq());
  }
  if (padded.segment_ids_size() != 0 && padded.segment_ids_size() != count) {
    return CheckCount("segment_ids", padded.segment_ids_size(), padded.batch(), padded.seq());
  }
  if (padded.attention_mask_size() != 0 && padded.attention_mask_size() != count) {
    return CheckCount("attention_mask", padded.attention_mask_size(), padded.batch(), padded.seq());
  }
  return absl::OkStatus();
}

// Row `row` of a [batch, seq] field; an empty field gives an empty row.
template <typename T, typename Field>
std::vector<T> Row(const Field& field, int64_t row, int64_t seq) {
  if (field.empty()) return {};
  const auto begin = field.begin() + row * seq;
  return std::vector<T>(begin, begin + seq);
}

absl::Status PaddedFromProto(const v1::PaddedBatch& padded, const EncodeLimits& limits,
                             EncodeInput& input) {
  ATTENDANT_RETURN_IF_ERROR(CheckPadded(padded, limits));
  for (int64_t row = 0; row < padded.batch(); ++row) {
    input.sequences.emplace_back(
        IdsInput{.token_ids = Row<int64_t>(padded.token_ids(), row, padded.seq()),
                 .segment_ids = Row<int64_t>(padded.segment_ids(), row, padded.seq()),
                 .attention_mask = Row<uint8_t>(padded.attention_mask(), row, padded.seq())});
  }
  return absl::OkStatus();
}

absl::Status InputFromProto(const v1::EncodeRequest& request, const EncodeLimits& limits,
                            EncodeInput& input) {
  switch (request.input_case()) {
    case v1::EncodeRequest::kSequences:
      return SequencesFromProto(request.sequences(), limits, input);
    case v1::EncodeRequest::kPadded:
      return PaddedFromProto(request.padded(), limits, input);
    case v1::EncodeRequest::INPUT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the request has neither sequences nor a padded batch");
}

absl::Status OutputsFromProto(const v1::OutputSelection& outputs, EncodeInput& input) {
  ATTENDANT_ASSIGN_OR_RETURN(input.pooling, PoolingFromProto(outputs.pooled().pooling()));
  if (outputs.pooled().has_normalize()) input.normalize = outputs.pooled().normalize();
  ATTENDANT_ASSIGN_OR_RETURN(input.score_activation,
                             ActivationFromProto(outputs.scores().activation()));
  input.scores = outputs.has_scores();
  input.last_hidden_state = outputs.last_hidden_state();
  input.pooled = outputs.has_pooled();
  input.dims = outputs.pooled().dims();
  const v1::AttentionSelection& attention = outputs.attention_weights();
  input.attention_weights = outputs.has_attention_weights();
  input.layers.attention_layers.assign(attention.layers().begin(), attention.layers().end());
  input.layers.attention_heads.assign(attention.heads().begin(), attention.heads().end());
  input.layers.hidden_layers.assign(outputs.hidden_layers().begin(), outputs.hidden_layers().end());
  input.token_strings = outputs.token_strings();
  input.word_weights = outputs.has_word_weights();
  input.token_offsets = outputs.token_offsets();
  TasksFromProto(outputs, input);
  return absl::OkStatus();
}

absl::Status PooledFormFromProto(v1::DType dtype, AnswerForm& form) {
  form.pooled_numbers = form.numbers;
  switch (dtype) {
    case v1::DTYPE_UNSPECIFIED:
      return absl::OkStatus();
    case v1::DTYPE_INT8:
      form.pooled = EmbeddingFormat::kInt8;
      return absl::OkStatus();
    case v1::DTYPE_BINARY:
      form.pooled = EmbeddingFormat::kBinary;
      return absl::OkStatus();
    case v1::DTYPE_UBINARY:
      form.pooled = EmbeddingFormat::kUbinary;
      return absl::OkStatus();
    default:
      break;
  }
  ATTENDANT_ASSIGN_OR_RETURN(form.pooled_numbers, FromProto("outputs.pooled.dtype", dtype));
  return absl::OkStatus();
}

// [tokens, hidden] of ragged input, [batch, seq, hidden] of padded; `outer` comes before.
std::string& StartHiddenStates(const AnswerForm& format, const EncodeOutput& output,
                               std::vector<int64_t> outer, v1::Tensor& tensor) {
  std::vector<int64_t> shape = std::move(outer);
  if (format.padded) {
    shape.push_back(static_cast<int64_t>(output.sequences.size()));
    shape.push_back(output.sequences.front().len());
  } else {
    shape.push_back(output.tokens());
  }
  shape.push_back(output.hidden);
  return StartTensor(shape, format.numbers, tensor);
}

void AddLastHiddenState(const AnswerForm& format, EncodeOutput& output, v1::Tensor& tensor) {
  std::string& bytes = StartHiddenStates(format, output, {}, tensor);
  for (EncodedSequence& sequence : output.sequences) {
    AppendHiddenState(sequence, output.hidden, sequence.result.last_hidden_state.data(),
                      format.numbers, bytes);
    std::vector<float>().swap(sequence.result.last_hidden_state);
  }
}

void AddHiddenStates(const AnswerForm& format, EncodeOutput& output, v1::Tensor& tensor) {
  const size_t layers = output.layers.hidden_layers.size();
  std::string& bytes = StartHiddenStates(format, output, {static_cast<int64_t>(layers)}, tensor);
  for (size_t layer = 0; layer < layers; ++layer) {
    for (const EncodedSequence& sequence : output.sequences) {
      const std::vector<float>& states = sequence.result.hidden_states;
      AppendHiddenState(sequence, output.hidden, states.data() + layer * (states.size() / layers),
                        format.numbers, bytes);
    }
  }
  for (EncodedSequence& sequence : output.sequences) {
    std::vector<float>().swap(sequence.result.hidden_states);
  }
}

void AddAttentionWeights(NumberFormat format, EncodeOutput& output, v1::EncodeResponse& response) {
  const auto layers = static_cast<int64_t>(output.layers.attention_layers.size());
  const auto heads = static_cast<int64_t>(output.layers.attention_heads.size());
  for (EncodedSequence& sequence : output.sequences) {
    const int64_t shape[] = {layers, heads, sequence.len(), sequence.len()};
    std::string& bytes = StartTensor(shape, format, *response.add_attention_weights());
    AppendAttentionWeights(sequence, layers * heads, format, bytes);
    std::vector<float>().swap(sequence.result.attention_weights);
  }
}

void AddScores(NumberFormat format, const EncodeOutput& output, v1::Tensor& tensor) {
  const int64_t shape[] = {static_cast<int64_t>(output.sequences.size()),
                           static_cast<int64_t>(output.sequences.front().scores.size())};
  std::string& bytes = StartTensor(shape, format, tensor);
  for (const EncodedSequence& sequence : output.sequences) {
    AppendValues(sequence.scores, format, bytes);
  }
}

void FillSequenceInfo(const EncodedSequence& sequence, const AnswerForm& form,
                      v1::SequenceInfo& info) {
  for (const std::string& token : sequence.token_strings) info.add_token_strings(token);
  // Ids have no offsets, and are at least one: this is a text.
  if (form.token_offsets && sequence.len() == 0) info.mutable_offsets();
  for (const auto& offset : sequence.rare_outputs().token_offsets) {
    info.mutable_offsets()->add_starts(static_cast<int32_t>(offset.begin));
    info.mutable_offsets()->add_ends(static_cast<int32_t>(offset.end));
  }
  info.set_tokens(sequence.len());
  info.set_truncated(sequence.truncated());
  info.set_tokens_seen(sequence.tokens_seen);
  SpansToProto(sequence.rare_outputs().spans, info);
  if (form.token_ids) {
    info.mutable_token_ids()->Add(sequence.token_ids.begin(), sequence.token_ids.end());
  }
}

}  // namespace

absl::StatusOr<EncodeInput> FromProto(const v1::EncodeRequest& request,
                                      const EncodeLimits& limits) {
  EncodeInput input;
  input.priority = request.priority();
  input.count_tokens = true;
  if (request.has_prompt_name()) input.prompt_name = request.prompt_name();
  ATTENDANT_ASSIGN_OR_RETURN(input.truncation, TruncationFromProto(request.truncation()));
  ATTENDANT_ASSIGN_OR_RETURN(input.pair_truncation,
                             PairTruncationFromProto(request.pair_truncation()));
  ATTENDANT_RETURN_IF_ERROR(OutputsFromProto(request.outputs(), input));
  ATTENDANT_RETURN_IF_ERROR(InputFromProto(request, limits, input));
  ATTENDANT_RETURN_IF_ERROR(SpansFromProto(request, input));
  return input;
}

absl::StatusOr<AnswerForm> AnswerFormFromProto(const v1::EncodeRequest& request) {
  AnswerForm form{.padded = request.has_padded(),
                  .token_ids = request.outputs().token_ids(),
                  .token_offsets = request.outputs().token_offsets()};
  ATTENDANT_ASSIGN_OR_RETURN(form.numbers, FromProto("outputs.dtype", request.outputs().dtype()));
  ATTENDANT_RETURN_IF_ERROR(PooledFormFromProto(request.outputs().pooled().dtype(), form));
  return form;
}

void ToProto(EncodeOutput& output, const AnswerForm& form, v1::EncodeResponse& response) {
  for (const EncodedSequence& sequence : output.sequences) {
    FillSequenceInfo(sequence, form, *response.add_sequences());
  }
  if (output.outputs.last_hidden_state) {
    AddLastHiddenState(form, output, *response.mutable_last_hidden_state());
  }
  if (!output.layers.hidden_layers.empty()) {
    AddHiddenStates(form, output, *response.mutable_hidden_states());
  }
  if (output.word_weights) {
    WordsToProto(output, form, response);
  } else if (output.layers.attention_maps() > 0) {
    AddAttentionWeights(form.numbers, output, response);
  }
  if (output.scores.has_value()) AddScores(form.numbers, output, *response.mutable_scores());
  if (!output.sequences.front().result.pooled.empty()) {
    AddPooled(form, output, response);
  }
  TasksToProto(output, form, response);
}

}  // namespace attendant
