// SPDX-License-Identifier: Apache-2.0
#include "client/wire.h"

#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/span_wire.h"
#include "client/task_wire.h"
#include "client/utf8.h"
#include "kernels/core/base/half.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

v1::Pooling ToProto(Pooling pooling) {
  switch (pooling) {
    case Pooling::kMean:
      return v1::POOLING_MEAN;
    case Pooling::kCls:
      return v1::POOLING_CLS;
    case Pooling::kMax:
      return v1::POOLING_MAX;
    case Pooling::kLast:
      return v1::POOLING_LAST;
    case Pooling::kMeanSqrtLen:
      return v1::POOLING_MEAN_SQRT_LEN;
    case Pooling::kWeightedMean:
      return v1::POOLING_WEIGHTED_MEAN;
    case Pooling::kModelDefault:
      break;
  }
  return v1::POOLING_UNSPECIFIED;
}

v1::Truncation ToProto(Truncation truncation) {
  switch (truncation) {
    case Truncation::kNone:
      return v1::TRUNCATION_NONE;
    case Truncation::kRight:
      return v1::TRUNCATION_RIGHT;
    case Truncation::kLeft:
      return v1::TRUNCATION_LEFT;
    case Truncation::kTextOnly:
      break;
  }
  return v1::TRUNCATION_UNSPECIFIED;
}

v1::PairTruncation ToProto(PairTruncation truncation) {
  switch (truncation) {
    case PairTruncation::kOnlyFirst:
      return v1::PAIR_TRUNCATION_ONLY_FIRST;
    case PairTruncation::kOnlySecond:
      return v1::PAIR_TRUNCATION_ONLY_SECOND;
    case PairTruncation::kLongestFirst:
      break;
  }
  return v1::PAIR_TRUNCATION_UNSPECIFIED;
}

v1::ScoreActivation ToProto(ScoreActivation activation) {
  switch (activation) {
    case ScoreActivation::kNone:
      return v1::SCORE_ACTIVATION_NONE;
    case ScoreActivation::kSigmoid:
      return v1::SCORE_ACTIVATION_SIGMOID;
    case ScoreActivation::kSoftmax:
      return v1::SCORE_ACTIVATION_SOFTMAX;
    case ScoreActivation::kModelDefault:
      break;
  }
  return v1::SCORE_ACTIVATION_UNSPECIFIED;
}

v1::DType ToProto(EmbeddingFormat format) {
  switch (format) {
    case EmbeddingFormat::kInt8:
      return v1::DTYPE_INT8;
    case EmbeddingFormat::kBinary:
      return v1::DTYPE_BINARY;
    case EmbeddingFormat::kUbinary:
      return v1::DTYPE_UBINARY;
    case EmbeddingFormat::kNumbers:
      break;
  }
  return v1::DTYPE_UNSPECIFIED;
}

int64_t ValueBytes(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_F32:
      return 4;
    case v1::DTYPE_INT8:
    case v1::DTYPE_BINARY:
    case v1::DTYPE_UBINARY:
      return 1;
    default:
      return 2;
  }
}

void FillIds(const TokenIds& ids, v1::TokenIds& proto) {
  proto.mutable_token_ids()->Add(ids.token_ids.begin(), ids.token_ids.end());
  proto.mutable_segment_ids()->Add(ids.segment_ids.begin(), ids.segment_ids.end());
  for (uint8_t keep : ids.attention_mask) proto.add_attention_mask(keep != 0);
}

void FillOutputs(const EncodeRequest& request, v1::OutputSelection& outputs) {
  outputs.set_last_hidden_state(request.last_hidden_state);
  outputs.set_token_ids(request.token_ids);
  outputs.set_token_strings(request.token_strings);
  outputs.set_token_offsets(request.token_offsets);
  outputs.set_dtype(ToProto(request.dtype));
  outputs.mutable_hidden_layers()->Add(request.hidden_layers.begin(), request.hidden_layers.end());
  if (request.attention_weights.has_value()) {
    const AttentionOptions& attention = *request.attention_weights;
    v1::AttentionSelection& chosen = *outputs.mutable_attention_weights();
    chosen.mutable_layers()->Add(attention.layers.begin(), attention.layers.end());
    chosen.mutable_heads()->Add(attention.heads.begin(), attention.heads.end());
  }
  FillTasks(request, outputs);
  if (request.scores.has_value()) {
    outputs.mutable_scores()->set_activation(ToProto(*request.scores));
  }
  if (!request.pooled.has_value()) return;
  v1::PooledOutput& pooled = *outputs.mutable_pooled();
  pooled.set_pooling(ToProto(request.pooled->pooling));
  if (request.pooled->normalize.has_value()) pooled.set_normalize(*request.pooled->normalize);
  pooled.set_dims(request.pooled->dims);
  pooled.set_dtype(ToProto(request.pooled->format));
  pooled.set_chunk_tokens(request.pooled->chunk_tokens);
}

template <typename Bits, typename Convert>
std::vector<float> Decode(const std::string& data, Convert convert) {
  std::vector<float> values(data.size() / sizeof(Bits));
  for (size_t i = 0; i < values.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, data.data() + i * sizeof(Bits), sizeof(Bits));
    values[i] = convert(bits);
  }
  return values;
}

// The number of values, or -1 for a negative dim or too many values.
int64_t CountValues(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && count > std::numeric_limits<int64_t>::max() / 4 / dim)) return -1;
    count *= dim;
  }
  return count;
}

absl::Status CheckRows(absl::string_view name, const Tensor& tensor, int64_t rows) {
  if (tensor.shape.empty()) return absl::OkStatus();
  if (tensor.shape.size() == 2 && tensor.shape[0] == rows) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the answer's ", name, " has shape [",
                                          absl::StrJoin(tensor.shape, ", "), "], expected ", rows,
                                          " rows"));
}

absl::Status CheckScales(const Tensor& scales, int64_t rows) {
  if (scales.shape == std::vector<int64_t>{rows}) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the answer's pooled_scales has shape [",
                                          absl::StrJoin(scales.shape, ", "), "], expected [", rows,
                                          "]"));
}

// [layers, heads, tokens, tokens] for each sequence.
absl::Status ReadAttentionWeights(const v1::EncodeResponse& response, EncodeResult& result) {
  if (response.attention_weights().empty()) return absl::OkStatus();
  if (response.attention_weights_size() != response.sequences_size()) {
    return absl::InternalError(absl::StrCat("the answer has attention weights of ",
                                            response.attention_weights_size(), " sequences, not ",
                                            response.sequences_size()));
  }
  for (int i = 0; i < response.sequences_size(); ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(Tensor weights, FromProto(response.attention_weights(i)));
    const int64_t tokens = response.sequences(i).tokens();
    const std::vector<int64_t>& shape = weights.shape;
    if (shape.size() != 4 || shape[2] != tokens || shape[3] != tokens) {
      return absl::InternalError(absl::StrCat("the answer's attention weights of sequence ", i,
                                              " have shape [", absl::StrJoin(shape, ", "),
                                              "], the sequence has ", tokens, " tokens"));
    }
    result.attention_weights.push_back(std::move(weights));
  }
  return absl::OkStatus();
}

absl::Status ReadHiddenStates(const v1::EncodeResponse& response, int64_t tokens,
                              EncodeResult& result) {
  if (!response.has_hidden_states()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(Tensor states, FromProto(response.hidden_states()));
  if (states.shape.size() != 3 || states.shape[1] != tokens) {
    return absl::InternalError(absl::StrCat("the answer's hidden_states has shape [",
                                            absl::StrJoin(states.shape, ", "), "], expected ",
                                            tokens, " tokens"));
  }
  result.hidden_states = std::move(states);
  return absl::OkStatus();
}

absl::Status ReadSequence(const v1::SequenceInfo& info, EncodeResult& result) {
  SequenceInfo sequence{
      .tokens = info.tokens(),
      .truncated = info.truncated(),
      .tokens_seen = info.tokens_seen(),
      .token_ids = {info.token_ids().begin(), info.token_ids().end()},
      .token_strings = {info.token_strings().begin(), info.token_strings().end()}};
  if (sequence.tokens < 0 || sequence.tokens > std::numeric_limits<int32_t>::max()) {
    return absl::InternalError(
        absl::StrCat("the answer has a sequence of ", sequence.tokens, " tokens"));
  }
  ATTENDANT_RETURN_IF_ERROR(ReadOffsets(info.offsets(), sequence));
  for (const size_t count :
       {sequence.token_ids.size(), sequence.token_strings.size(), sequence.token_offsets.size()}) {
    if (count == 0 || static_cast<int64_t>(count) == sequence.tokens) continue;
    return absl::InternalError(absl::StrCat("the answer names ", count, " tokens of sequence ",
                                            result.sequences.size(), ", which has ",
                                            sequence.tokens));
  }
  ATTENDANT_RETURN_IF_ERROR(ReadSpans(info, sequence));
  result.sequences.push_back(std::move(sequence));
  return absl::OkStatus();
}

absl::Status CheckText(int index, absl::string_view text) {
  return RequireUtf8(absl::StrCat("sequence ", index), text);
}

// "POOLING_MEAN" -> "mean"
std::string LowerSuffix(absl::string_view name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

}  // namespace

v1::DType ToProto(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return v1::DTYPE_BF16;
    case DType::kF16:
      return v1::DTYPE_F16;
    case DType::kF32:
      break;
  }
  return v1::DTYPE_F32;
}

absl::StatusOr<v1::EncodeRequest> ToProto(const EncodeRequest& request) {
  v1::EncodeRequest proto;
  ATTENDANT_RETURN_IF_ERROR(RequireUtf8("model", request.model));
  ATTENDANT_RETURN_IF_ERROR(RequireUtf8("prompt_name", request.prompt_name.value_or("")));
  proto.set_model(request.model);
  if (request.model_version != 0) proto.set_model_version(absl::StrCat(request.model_version));
  proto.set_truncation(ToProto(request.truncation));
  proto.set_pair_truncation(ToProto(request.pair_truncation));
  proto.set_priority(request.priority);
  if (request.prompt_name.has_value()) proto.set_prompt_name(*request.prompt_name);
  FillOutputs(request, *proto.mutable_outputs());
  v1::Sequences& sequences = *proto.mutable_sequences();
  for (const Sequence& sequence : request.sequences) {
    v1::Sequence& added = *sequences.add_sequences();
    if (const auto* ids = std::get_if<TokenIds>(&sequence)) {
      FillIds(*ids, *added.mutable_ids());
      continue;
    }
    const int index = sequences.sequences_size() - 1;
    if (const auto* pair = std::get_if<TextPair>(&sequence)) {
      ATTENDANT_RETURN_IF_ERROR(CheckText(index, pair->first));
      ATTENDANT_RETURN_IF_ERROR(CheckText(index, pair->second));
      added.mutable_pair()->set_first(pair->first);
      added.mutable_pair()->set_second(pair->second);
      continue;
    }
    const std::string& text = std::get<std::string>(sequence);
    ATTENDANT_RETURN_IF_ERROR(CheckText(index, text));
    added.set_text(text);
  }
  ATTENDANT_RETURN_IF_ERROR(FillSpans(request, sequences));
  return proto;
}

absl::StatusOr<Tensor> FromProto(const v1::Tensor& proto) {
  Tensor tensor;
  tensor.shape.assign(proto.shape().begin(), proto.shape().end());
  const std::string& data = proto.data();
  const int64_t count = CountValues(tensor.shape);
  if (count < 0 || data.size() != static_cast<size_t>(count * ValueBytes(proto.dtype()))) {
    return absl::InternalError(absl::StrCat("the answer's tensor of shape [",
                                            absl::StrJoin(tensor.shape, ", "), "] came with ",
                                            data.size(), " bytes"));
  }
  switch (proto.dtype()) {
    case v1::DTYPE_F32:
      tensor.values = Decode<uint32_t>(data, [](uint32_t b) { return std::bit_cast<float>(b); });
      return tensor;
    case v1::DTYPE_BF16:
      tensor.values = Decode<uint16_t>(data, FromBf16);
      return tensor;
    case v1::DTYPE_F16:
      tensor.values = Decode<uint16_t>(data, FromF16);
      return tensor;
    case v1::DTYPE_INT8:
    case v1::DTYPE_BINARY:
      tensor.values = Decode<int8_t>(data, [](int8_t value) { return static_cast<float>(value); });
      return tensor;
    case v1::DTYPE_UBINARY:
      tensor.values =
          Decode<uint8_t>(data, [](uint8_t value) { return static_cast<float>(value); });
      return tensor;
    default:
      return absl::InternalError(
          absl::StrCat("the answer's tensor has the unknown dtype ", proto.dtype()));
  }
}

absl::StatusOr<EncodeResult> FromProto(const v1::EncodeResponse& response) {
  EncodeResult result;
  result.model = response.model();
  int64_t tokens = 0;
  for (const v1::SequenceInfo& info : response.sequences()) {
    tokens += info.tokens();
    ATTENDANT_RETURN_IF_ERROR(ReadSequence(info, result));
  }
  if (response.has_last_hidden_state()) {
    ATTENDANT_ASSIGN_OR_RETURN(result.last_hidden_state, FromProto(response.last_hidden_state()));
  }
  if (response.has_pooled()) {
    ATTENDANT_ASSIGN_OR_RETURN(result.pooled, FromProto(response.pooled()));
  }
  if (response.has_pooled_scales()) {
    ATTENDANT_ASSIGN_OR_RETURN(result.pooled_scales, FromProto(response.pooled_scales()));
    ATTENDANT_RETURN_IF_ERROR(CheckScales(result.pooled_scales, CountEmbeddings(result)));
  }
  if (response.has_scores()) {
    ATTENDANT_ASSIGN_OR_RETURN(result.scores, FromProto(response.scores()));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckRows("last_hidden_state", result.last_hidden_state, tokens));
  ATTENDANT_RETURN_IF_ERROR(CheckRows("pooled", result.pooled, CountEmbeddings(result)));
  ATTENDANT_RETURN_IF_ERROR(CheckRows("scores", result.scores, response.sequences_size()));
  ATTENDANT_RETURN_IF_ERROR(ReadAttentionWeights(response, result));
  ATTENDANT_RETURN_IF_ERROR(ReadHiddenStates(response, tokens, result));
  ATTENDANT_RETURN_IF_ERROR(ReadTasks(response, result));
  result.timings = FromProto(response.timings());
  return result;
}

Timings FromProto(const v1::Timings& timings) {
  return {.tokenize_us = timings.tokenize_us(),
          .queue_us = timings.queue_us(),
          .compute_us = timings.compute_us(),
          .total_us = timings.total_us()};
}

std::string FromProto(v1::ModelState state) {
  return LowerSuffix(v1::ModelState_Name(state), "MODEL_STATE_");
}

ModelInfo FromProto(const v1::ModelInfo& model) {
  ModelInfo info;
  info.name = model.name();
  info.version = model.version();
  info.state = FromProto(model.state());
  info.error = model.error();
  info.backend = model.backend();
  info.isa = model.isa();
  info.dtype = model.dtype();
  info.pooling = absl::StrJoin(model.poolings(), "+", [](std::string* names, int pooling) {
    names->append(LowerSuffix(v1::Pooling_Name(static_cast<v1::Pooling>(pooling)), "POOLING_"));
  });
  info.embedding_dims = model.embedding_dims();
  info.layers = model.layers();
  info.heads = model.heads();
  info.hidden = model.hidden();
  info.vocab = model.vocab();
  info.max_sequence_tokens = model.max_sequence_tokens();
  info.max_text_tokens = model.max_text_tokens();
  info.normalize = model.normalize();
  info.labels.assign(model.labels().begin(), model.labels().end());
  info.prompt_names.assign(model.prompt_names().begin(), model.prompt_names().end());
  info.default_prompt_name = model.default_prompt_name();
  info.tasks.assign(model.tasks().begin(), model.tasks().end());
  info.token_labels.assign(model.token_labels().begin(), model.token_labels().end());
  return info;
}

}  // namespace attendant::client
