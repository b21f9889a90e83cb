// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/encoder/messages.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/rpc/wire/messages.h"

namespace attendant {
namespace {

constexpr size_t kMaxIdBytes = 256;

absl::StatusOr<std::optional<Pooling>> DecodePooling(v1::Pooling pooling) {
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
    default:
      return UnknownEnum("outputs.pooled.pooling", pooling);
  }
}

absl::StatusOr<Truncation> DecodeTruncation(v1::Truncation truncation) {
  switch (truncation) {
    case v1::TRUNCATION_UNSPECIFIED:
      return Truncation::kTextOnly;
    case v1::TRUNCATION_NONE:
      return Truncation::kNone;
    case v1::TRUNCATION_RIGHT:
      return Truncation::kRight;
    default:
      return UnknownEnum("truncation", truncation);
  }
}

absl::Status DecodeSequences(const v1::Sequences& sequences, const EncodeLimits& limits,
                             EncodeInput& input) {
  if (sequences.sequences_size() > limits.max_request_sequences) {
    return absl::InvalidArgumentError(absl::StrCat("the request has ", sequences.sequences_size(),
                                                   " sequences, the limit is ",
                                                   limits.max_request_sequences));
  }
  for (const v1::Sequence& sequence : sequences.sequences()) {
    if (sequence.has_text()) {
      input.sequences.emplace_back(sequence.text());
    } else if (sequence.has_ids()) {
      const v1::TokenIds& ids = sequence.ids();
      input.sequences.emplace_back(
          IdsInput{.token_ids = {ids.token_ids().begin(), ids.token_ids().end()},
                   .segment_ids = {ids.segment_ids().begin(), ids.segment_ids().end()},
                   .attention_mask = {ids.attention_mask().begin(), ids.attention_mask().end()}});
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", input.sequences.size(), " has neither text nor ids"));
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

absl::Status DecodePadded(const v1::PaddedBatch& padded, const EncodeLimits& limits,
                          EncodeInput& input) {
  if (absl::Status status = CheckPadded(padded, limits); !status.ok()) return status;
  for (int64_t row = 0; row < padded.batch(); ++row) {
    input.sequences.emplace_back(
        IdsInput{.token_ids = Row<int64_t>(padded.token_ids(), row, padded.seq()),
                 .segment_ids = Row<int64_t>(padded.segment_ids(), row, padded.seq()),
                 .attention_mask = Row<uint8_t>(padded.attention_mask(), row, padded.seq())});
  }
  return absl::OkStatus();
}

absl::Status DecodeInput(const v1::EncodeRequest& request, const EncodeLimits& limits,
                         EncodeInput& input) {
  switch (request.input_case()) {
    case v1::EncodeRequest::kSequences:
      return DecodeSequences(request.sequences(), limits, input);
    case v1::EncodeRequest::kPadded:
      return DecodePadded(request.padded(), limits, input);
    case v1::EncodeRequest::INPUT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the request has neither sequences nor a padded batch");
}

absl::Status DecodeOutputs(const v1::OutputSelection& outputs, DecodedRequest& decoded) {
  absl::StatusOr<std::optional<Pooling>> pooling = DecodePooling(outputs.pooled().pooling());
  if (!pooling.ok()) return pooling.status();
  absl::StatusOr<NumberFormat> numbers = FromWire("outputs.dtype", outputs.dtype());
  if (!numbers.ok()) return numbers.status();
  decoded.format.numbers = *numbers;
  decoded.format.last_hidden_state = outputs.last_hidden_state();
  decoded.format.token_ids = outputs.token_ids();
  decoded.input.last_hidden_state = outputs.last_hidden_state();
  decoded.input.pooled = outputs.has_pooled();
  decoded.input.pooling = *pooling;
  if (outputs.pooled().has_normalize()) decoded.input.normalize = outputs.pooled().normalize();
  decoded.input.dims = outputs.pooled().dims();
  const v1::AttentionSelection& attention = outputs.attention_weights();
  decoded.input.attention_weights = outputs.has_attention_weights();
  decoded.input.attention_layers.assign(attention.layers().begin(), attention.layers().end());
  decoded.input.attention_heads.assign(attention.heads().begin(), attention.heads().end());
  decoded.input.hidden_layers.assign(outputs.hidden_layers().begin(),
                                     outputs.hidden_layers().end());
  decoded.input.token_strings = outputs.token_strings();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DecodedRequest> DecodeRequest(const v1::EncodeRequest& request,
                                             const EncodeLimits& limits) {
  if (request.id().size() > kMaxIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("id has ", request.id().size(), " bytes, the limit is ", kMaxIdBytes));
  }
  DecodedRequest decoded;
  decoded.input.model = request.model();
  decoded.input.priority = request.priority();
  decoded.format.padded = request.has_padded();
  absl::StatusOr<Truncation> truncation = DecodeTruncation(request.truncation());
  if (!truncation.ok()) return truncation.status();
  decoded.input.truncation = *truncation;
  if (absl::Status status = DecodeOutputs(request.outputs(), decoded); !status.ok()) return status;
  absl::Status status = DecodeInput(request, limits, decoded.input);
  if (!status.ok()) return status;
  return decoded;
}

}  // namespace attendant
