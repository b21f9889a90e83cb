// SPDX-License-Identifier: Apache-2.0
#include "server/requests/outputs/lookup.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/models/encoder_model.h"
#include "server/models/sentence/sparse_lookup.h"
#include "server/requests/invalid.h"
#include "server/requests/tasks.h"
#include "server/text/tokenizer.h"

namespace attendant {
namespace {

bool AsksForSparseAlone(const EncodeInput& input) {
  const bool other = input.names_embeddings() || input.scores || input.wants_internals();
  return !other && input.tasks.size() == 1 && input.tasks[0].kind == TaskKind::kSparse;
}

// Leaves out what is not the text's own.
template <typename T>
void KeepOwn(const Tokenizer::SpecialTokens& special, std::vector<T>& values) {
  if (values.empty()) return;
  values.resize(values.size() - special.after);
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(special.before));
}

}  // namespace

bool LooksUp(const SequenceReading& reading) {
  return reading.prompt != nullptr && reading.prompt->looks_up;
}

absl::Status CheckLookup(const SequenceReading& reading) {
  const EncodeInput& input = reading.input;
  const auto is_text = [](const SequenceContent& content) {
    return std::holds_alternative<std::string>(content);
  };
  if (!LooksUp(reading) || AsksForSparseAlone(input)) return absl::OkStatus();
  if (std::none_of(input.sequences.begin(), input.sequences.end(), is_text)) {
    return absl::OkStatus();
  }
  return Invalid("queries of model '", reading.model.name,
                 "' are looked up: ask for `sparse` alone, or name the prompt `document`");
}

absl::StatusOr<EncodedSequence> LookUp(const SequenceReading& reading, size_t index,
                                       const std::string& text, int64_t top_k) {
  const EncodeInput& input = reading.input;
  const SparseLookup& lookup = *reading.model.lookup;
  const Tokenizer& tokenizer =
      lookup.tokenizer == nullptr ? *reading.model.tokenizer : *lookup.tokenizer;
  const Tokenizer::SpecialTokens special = tokenizer.special_tokens();
  const auto around = static_cast<int64_t>(special.before + special.after);
  absl::StatusOr<TokenizedText> tokens = tokenizer.Tokenize(
      text, {.max_tokens = lookup.max_tokens + around,
             .truncate = input.truncation != Truncation::kNone,
             .side = SideOf(reading),
             .prompt = reading.prompt->text,
             .count = input.count_tokens,
             .offsets = input.token_offsets ? OffsetUnit::kCharacters : OffsetUnit::kNone});
  if (!tokens.ok()) return InSequence(input, index, tokens.status());
  KeepOwn(special, tokens->token_ids);
  KeepOwn(special, tokens->offsets);
  EncodedSequence sequence;
  sequence.tokens_seen = tokens->tokens_seen - around;
  sequence.MutableRareOutputs().token_offsets = std::move(tokens->offsets);
  sequence.MutableRareOutputs().looked_up = lookup.Weigh(tokens->token_ids, top_k);
  sequence.token_ids = std::move(tokens->token_ids);
  return sequence;
}

int64_t CountLookupBytes(const EncodeOutput& output, const EncodedSequence& sequence) {
  const auto weights = static_cast<int64_t>(sequence.rare_outputs().looked_up->indices.size());
  return weights * TaskValueBytes(output.tasks[0]);
}

bool TakeLookup(EncodedSequence& sequence) {
  if (!sequence.looked_up()) return false;
  sequence.result.tasks.push_back(*std::move(sequence.MutableRareOutputs().looked_up));
  return true;
}

}  // namespace attendant
