// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/served_kinds.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/heads/head.h"
#include "server/models/model_name.h"
#include "server/protocols/kserve/output_rows.h"

namespace attendant {
namespace {

using Specs = std::vector<TensorSpec>;

std::string LacksNothing(const EncoderFacts& /*facts*/) { return ""; }
std::string LacksClassifier(const EncoderFacts& facts) {
  return facts.labels > 0 ? "" : "no classifier";
}

void AskEmbedding(EncodeInput& input) { input.pooled = true; }
void AskHiddenState(EncodeInput& input) { input.last_hidden_state = true; }
void AskScores(EncodeInput& input) { input.scores = true; }

Specs Embedding(const EncoderFacts& facts) {
  return {Padded<PooledOf>("sentence_embedding", {facts.embedding_dims})};
}
Specs HiddenState(const EncoderFacts& facts) {
  return {HiddenStates("last_hidden_state", {-1, facts.hidden})};
}
Specs Scores(const EncoderFacts& facts) { return {Padded<ScoresOf>("scores", {facts.labels})}; }

// The columns of a row of a head's result, where the model has the head.
std::optional<int64_t> ColumnsOf(const EncoderFacts& facts, TaskKind task) {
  return facts.task_columns[static_cast<size_t>(task)];
}

// NAME.suffix of a head on tokens.
template <TaskKind kTask>
constexpr ServedKind OfHead(absl::string_view suffix, Specs (*outputs)(const EncoderFacts&)) {
  return {.suffix = suffix,
          .max_texts = 1,
          .lacks =
              [](const EncoderFacts& facts) {
                return ColumnsOf(facts, kTask).has_value()
                           ? ""
                           : absl::StrCat("no head that makes ", TaskName(kTask));
              },
          .ask = [](EncodeInput& input) { input.tasks.push_back({.kind = kTask}); },
          .outputs = outputs,
          .sized_by_results = true};
}

Specs SparseVectors(const EncoderFacts& /*facts*/) {
  return {Padded<IndicesOf>("indices", {-1}), Padded<ValuesOf>("weights", {-1})};
}
Specs Masks(const EncoderFacts& facts) {
  const int64_t k = ColumnsOf(facts, TaskKind::kFillMask).value_or(0);
  return {Padded<PlacesOf>("tokens", {-1}), Padded<IndicesOf>("indices", {-1, k}),
          Padded<ValuesOf>("scores", {-1, k})};
}
Specs TokenScores(const EncoderFacts& facts) {
  const int64_t labels = ColumnsOf(facts, TaskKind::kTokenScores).value_or(0);
  return {Padded<IdsOf>("token_ids", {-1}), Padded<ValuesOf>("scores", {-1, labels})};
}
Specs MultiVectors(const EncoderFacts& facts) {
  const int64_t dims = ColumnsOf(facts, TaskKind::kMultiVector).value_or(0);
  return {Padded<PlacesOf>("tokens", {-1}), Padded<ValuesOf>("vectors", {-1, dims})};
}

constexpr std::array kServedKinds = std::to_array<ServedKind>({
    {.suffix = "",
     .max_texts = 1,
     .lacks = LacksNothing,
     .ask = AskEmbedding,
     .outputs = Embedding},
    {.suffix = ".ids", .lacks = LacksNothing, .ask = AskEmbedding, .outputs = Embedding},
    {.suffix = ".encoder", .lacks = LacksNothing, .ask = AskHiddenState, .outputs = HiddenState},
    {.suffix = ".scores",
     .max_texts = kMaxRowTexts,
     .lacks = LacksClassifier,
     .ask = AskScores,
     .outputs = Scores},
    OfHead<TaskKind::kSparse>(".sparse", SparseVectors),
    OfHead<TaskKind::kFillMask>(".masks", Masks),
    OfHead<TaskKind::kTokenScores>(".tokens", TokenScores),
    OfHead<TaskKind::kMultiVector>(".multi_vectors", MultiVectors),
});
static_assert(kServedKinds.front().suffix.empty() &&
                  std::all_of(kServedKinds.begin() + 1, kServedKinds.end(),
                              [](const ServedKind& kind) { return IsReservedEnding(kind.suffix); }),
              "a suffix must be in kReservedEndings, or a model could have the name");

}  // namespace

std::string ServedKind::NameOf(absl::string_view model) const {
  return absl::StrCat(model, suffix);
}

std::vector<TensorSpec> ServedKind::inputs(const EncoderFacts& facts) const {
  if (takes_texts()) {
    return {{.name = "text",
             .datatype = "BYTES",
             .data_type = inference::TYPE_STRING,
             .dims = {max_texts > 1 ? -1 : 1},
             .max_width = max_texts}};
  }
  TensorSpec ids{.name = "input_ids",
                 .datatype = "INT64",
                 .data_type = inference::TYPE_INT64,
                 .dims = {-1},
                 .max_width = facts.max_sequence_tokens};
  TensorSpec mask = ids;
  mask.name = "attention_mask";
  mask.optional = true;
  TensorSpec segments = mask;
  segments.name = "token_type_ids";
  return {ids, mask, segments};
}

std::span<const ServedKind> ServedKinds() { return kServedKinds; }

std::pair<absl::string_view, const ServedKind*> SplitServedName(absl::string_view name) {
  for (const ServedKind& kind : ServedKinds().subspan(1)) {
    if (absl::EndsWith(name, kind.suffix)) {
      return {name.substr(0, name.size() - kind.suffix.size()), &kind};
    }
  }
  return {name, &kServedKinds.front()};
}

absl::Status CheckServed(absl::string_view name, const ServedKind& kind,
                         const EncoderFacts& facts) {
  if (kind.takes_texts() && !facts.takes_text) {
    return absl::NotFoundError(
        absl::StrCat("model ", Quote(name), " has no tokenizer: use '.ids' or '.encoder'"));
  }
  const std::string lacking = kind.lacks(facts);
  if (lacking.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no model ", Quote(name), ": the model has ", lacking));
}

int64_t RowValues(const TensorSpec& spec, int64_t seq) {
  int64_t values = 1;
  for (const int64_t dim : spec.dims) values *= dim < 0 ? seq : dim;
  return values;
}

std::string TensorNames(const std::vector<TensorSpec>& specs) {
  return absl::StrJoin(specs, ", ", [](std::string* out, const TensorSpec& spec) {
    absl::StrAppend(out, spec.name);
  });
}

}  // namespace attendant
