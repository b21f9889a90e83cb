// SPDX-License-Identifier: Apache-2.0
#include "server/requests/read_sequence.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/models/sentence/pair_form.h"
#include "server/requests/invalid.h"
#include "server/requests/outputs/late_scores.h"
#include "server/text/tokenizer.h"

namespace attendant {
namespace {

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

absl::StatusOr<EncodedSequence> FromIds(const SequenceReading& reading, size_t index,
                                        const IdsInput& ids) {
  const EncoderModel& model = reading.model;
  ATTENDANT_RETURN_IF_ERROR(InSequence(reading.input, index, CheckIds(model.config(), ids)));
  const int64_t limit = model.max_sequence_tokens;
  const Truncation truncation = reading.input.truncation;
  const bool left = truncation == Truncation::kLeft;
  EncodedSequence sequence;
  sequence.tokens_seen = static_cast<int64_t>(ids.token_ids.size());
  if (sequence.tokens_seen > limit && !left && truncation != Truncation::kRight) {
    return Invalid("sequence ", index, " has ", ids.token_ids.size(), " tokens, the limit is ",
                   limit);
  }
  const int64_t len = std::min(sequence.tokens_seen, limit);
  const int64_t first = left ? sequence.tokens_seen - len : 0;
  const auto keep = [&](const auto& from, auto& to) {
    if (!from.empty()) to.assign(from.begin() + first, from.begin() + first + len);
  };
  keep(ids.token_ids, sequence.token_ids);
  keep(ids.attention_mask, sequence.attention_mask);
  sequence.segment_ids.resize(static_cast<size_t>(len));
  keep(ids.segment_ids, sequence.segment_ids);
  return sequence;
}

// The most tokens that the tokenizer may make of a text of this form: its marker comes later.
int64_t TokensOf(const TextForm& form, int64_t max_text_tokens) {
  if (form.max_tokens == 0) return max_text_tokens;
  return form.max_tokens - (form.marker.has_value() ? 1 : 0);
}

// Of a model whose pairs have a form.
absl::StatusOr<TokenizedText> TokenizeFormed(const SequenceReading& reading, const PairForm& form,
                                             const SequenceContent& content,
                                             const TokenizerOptions& options) {
  const auto* const pair = std::get_if<TextPair>(&content);
  if (pair == nullptr) {
    return Invalid("it is a single text, but the chat template of model '", reading.model.name,
                   "' takes pairs of texts");
  }
  if (options.pair != PairTruncation::kLongestFirst) {
    return Invalid("pair_truncation is not for model '", reading.model.name,
                   "', whose chat template makes one text of a pair");
  }
  if (options.offsets != OffsetUnit::kNone) {
    return Invalid("token_offsets are not for model '", reading.model.name,
                   "', whose chat template makes one text of a pair");
  }
  return TokenizePair(form, *reading.model.tokenizer, *pair->first, pair->second, options);
}

absl::StatusOr<TokenizedText> TokenizeContent(const SequenceReading& reading, size_t index,
                                              const SequenceContent& content) {
  const Tokenizer& tokenizer = *reading.model.tokenizer;
  TokenizerOptions options{.max_tokens = reading.model.sentence.max_text_tokens,
                           .truncate = reading.input.truncation != Truncation::kNone,
                           .side = SideOf(reading),
                           .pair = reading.input.pair_truncation,
                           .count = reading.input.count_tokens};
  if (reading.input.token_offsets) options.offsets = OffsetUnit::kCharacters;
  const auto* const pair = std::get_if<TextPair>(&content);
  if (pair != nullptr) options.max_second_tokens = reading.input.max_tokens;
  if (const PairForm* form = reading.model.prompts.FindPairForm(reading.prompt)) {
    return TokenizeFormed(reading, *form, content, options);
  }
  if (pair != nullptr) {
    return tokenizer.TokenizePair(*pair->first, pair->second, options);
  }
  if (reading.prompt != nullptr) {
    options.prompt = reading.prompt->text;
    if (reading.prompt->form.has_value()) {
      options.max_tokens = TokensOf(*reading.prompt->form, options.max_tokens);
    }
  }
  const bool is_query = index < reading.input.num_queries();
  if (reading.input.max_tokens > 0 && !is_query) {
    // As the second text of a pair, a document that this makes fit is not too long.
    if (reading.input.compares() && reading.input.max_tokens < options.max_tokens) {
      options.truncate = true;
    }
    options.max_tokens = std::min(options.max_tokens, reading.input.max_tokens);
  }
  return tokenizer.Tokenize(std::get<std::string>(content), options);
}

// A text or a pair of texts.
absl::StatusOr<EncodedSequence> FromText(const SequenceReading& reading, size_t index,
                                         const SequenceContent& content) {
  const EncoderModel& model = reading.model;
  if (model.tokenizer == nullptr) {
    return Invalid("sequence ", index, " is text, but model '", model.name,
                   "' takes token ids only: its checkpoint has no tokenizer.json. Transformers "
                   "writes one: "
                   "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)");
  }
  absl::StatusOr<TokenizedText> tokenized = TokenizeContent(reading, index, content);
  if (!tokenized.ok()) return InSequence(reading.input, index, tokenized.status());
  EncodedSequence sequence;
  sequence.token_ids = std::move(tokenized->token_ids);
  sequence.segment_ids = std::move(tokenized->segment_ids);
  if (reading.input.token_offsets) {
    sequence.MutableRareOutputs().token_offsets = std::move(tokenized->offsets);
  }
  // A tokenizer may know segments that its model does not: then they make no difference.
  if (model.config().segment_types == 1) sequence.segment_ids.assign(sequence.token_ids.size(), 0);
  sequence.tokens_seen = tokenized->tokens_seen;
  return sequence;
}

void AddMarker(int32_t marker, EncodedSequence& sequence) {
  const auto at = sequence.token_ids.empty() ? 0 : 1;
  sequence.token_ids.insert(sequence.token_ids.begin() + at, marker);
  sequence.segment_ids.insert(sequence.segment_ids.begin() + at, 0);
  ++sequence.tokens_seen;
  if (sequence.rare_outputs().token_offsets.empty()) return;
  std::vector<TokenOffset>& offsets = sequence.MutableRareOutputs().token_offsets;
  offsets.insert(offsets.begin() + at, TokenOffset{});
}

void FillUp(const TextForm& form, EncodedSequence& sequence) {
  const auto filled = static_cast<size_t>(form.filled_tokens);
  if (!form.filler.has_value() || filled <= sequence.token_ids.size()) return;
  if (!form.attends_to_filler) sequence.attended_tokens = sequence.len();
  sequence.tokens_seen += form.filled_tokens - sequence.len();
  sequence.token_ids.resize(filled, *form.filler);
  sequence.segment_ids.resize(filled, 0);
  if (!sequence.rare_outputs().token_offsets.empty()) {
    sequence.MutableRareOutputs().token_offsets.resize(filled);
  }
}

// Adds the marker behind the first token, and then the tokens that fill up the sequence.
void ApplyForm(const TextForm& form, EncodedSequence& sequence) {
  if (form.marker.has_value()) AddMarker(*form.marker, sequence);
  FillUp(form, sequence);
}

}  // namespace

TruncationSide SideOf(const SequenceReading& reading) {
  switch (reading.input.truncation) {
    case Truncation::kLeft:
      return TruncationSide::kLeft;
    case Truncation::kTextOnly:
      return reading.model.sentence.truncation_side.value_or(
          reading.model.tokenizer->truncation_side());
    case Truncation::kNone:
    case Truncation::kRight:
      break;
  }
  return TruncationSide::kRight;
}

absl::Status InSequence(const EncodeInput& input, size_t index, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("sequence ", PairOf(input, index), ": ", status.message()));
}

absl::StatusOr<EncodedSequence> ReadSequence(const SequenceReading& reading, size_t index,
                                             const SequenceContent& content) {
  const bool is_text = std::holds_alternative<std::string>(content);
  const bool takes_prompt = is_text || (std::holds_alternative<TextPair>(content) &&
                                        reading.model.prompts.pair_form.has_value());
  if (!takes_prompt && reading.prompt != nullptr && reading.input.prompt_name.has_value()) {
    return Invalid("sequence ", index, " is no single text: prompt_name is for texts");
  }
  if (const auto* ids = std::get_if<IdsInput>(&content)) return FromIds(reading, index, *ids);
  ATTENDANT_ASSIGN_OR_RETURN(EncodedSequence sequence, FromText(reading, index, content));
  if (!is_text || reading.prompt == nullptr) return sequence;
  sequence.prompt_tokens = reading.prompt->tokens;
  if (reading.prompt->form.has_value()) ApplyForm(*reading.prompt->form, sequence);
  return sequence;
}

}  // namespace attendant
