// SPDX-License-Identifier: Apache-2.0
#include "server/requests/outputs/late_scores.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/string_view.h"
#include "kernels/core/status_macros.h"
#include "kernels/heads/max_sim.h"
#include "server/requests/invalid.h"

namespace attendant {
namespace {

// Places in EncodeWork::tasks.
constexpr int32_t kQueryTask = 0, kDocumentTask = 1;

absl::Status CheckAlone(const EncoderModel& model, const EncodeInput& input) {
  if (input.names_embeddings() || !input.tasks.empty() || input.wants_internals()) {
    return Invalid("model '", model.name,
                   "' makes scores from the vectors of two texts: ask for other outputs of the "
                   "texts in another request");
  }
  if (input.prompt_name.value_or("").empty()) return absl::OkStatus();
  return Invalid(
      "prompt_name is for texts: of a pair, the first is a query, the second a document");
}

absl::Status CheckPairs(const EncoderModel& model, const EncodeInput& input) {
  for (size_t i = 0; i < input.sequences.size(); ++i) {
    if (std::holds_alternative<TextPair>(input.sequences[i])) continue;
    return Invalid("sequence ", i, " is no pair of texts: model '", model.name,
                   "' has no classifier, it scores a query and a document");
  }
  return absl::OkStatus();
}

const Prompt* FindPrompt(const Prompts& prompts, std::initializer_list<const char*> names) {
  std::optional<std::string> chosen;
  for (const char* name : names) {
    if (!chosen.has_value() && prompts.by_name.contains(name)) chosen = name;
  }
  const absl::StatusOr<const Prompt*> prompt = prompts.Find(chosen);
  return prompt.ok() ? *prompt : nullptr;
}

size_t NumQueries(const EncodeOutput& output) {
  return output.sequences.size() - output.query_of.size();
}

// The vectors of each sequence; of one without tokens, none.
std::vector<std::vector<float>> TakeVectors(std::vector<SequenceResult> results,
                                            const EncodeOutput& output) {
  std::vector<std::vector<float>> vectors(output.sequences.size());
  auto next = results.begin();
  for (size_t i = 0; i < vectors.size(); ++i) {
    if (output.sequences[i].unmasked_tokens() == 0) continue;
    const int32_t task = i < NumQueries(output) ? kQueryTask : kDocumentTask;
    vectors[i] = std::move((next++)->tasks[static_cast<size_t>(task)].values);
  }
  return vectors;
}

}  // namespace

bool ComparesPairs(const EncoderModel& model) {
  return !model.classifier.has_value() && model.tokenizer != nullptr &&
         model.heads.Find(TaskKind::kMultiVector).has_value();
}

absl::Status SplitPairs(const EncoderModel& model, EncodeInput& input) {
  if (!input.scores || !ComparesPairs(model)) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(CheckAlone(model, input));
  ATTENDANT_RETURN_IF_ERROR(CheckPairs(model, input));
  std::vector<SequenceContent> texts, documents;
  std::map<absl::string_view, int32_t> queries;
  for (SequenceContent& content : input.sequences) {
    TextPair& pair = std::get<TextPair>(content);
    const auto [query, is_new] =
        queries.try_emplace(*pair.first, static_cast<int32_t>(texts.size()));
    if (is_new) texts.emplace_back(*pair.first);
    input.query_of.push_back(query->second);
    documents.emplace_back(std::move(pair.second));
  }
  texts.insert(texts.end(), std::make_move_iterator(documents.begin()),
               std::make_move_iterator(documents.end()));
  input.sequences = std::move(texts);
  return absl::OkStatus();
}

PairPrompts FindPairPrompts(const EncoderModel& model) {
  return {.query = FindPrompt(model.prompts, {"query"}),
          .document = FindPrompt(model.prompts, {"document", "passage", "corpus"})};
}

void ChooseVectors(const EncoderModel& model, const EncodeInput& input, EncodeWork& work,
                   EncodeOutput& output) {
  const size_t head = *model.heads.Find(TaskKind::kMultiVector);
  for (const bool document : {false, true}) {
    work.tasks.push_back(
        {.head = head, .options = {.kind = TaskKind::kMultiVector, .document = document}});
  }
  output.query_of = input.query_of;
  output.scores = ScoreActivation::kNone;
}

size_t PairOf(const EncodeInput& input, size_t index) {
  if (index >= input.num_queries()) return index - input.num_queries();
  const auto first =
      std::find(input.query_of.begin(), input.query_of.end(), static_cast<int32_t>(index));
  return static_cast<size_t>(first - input.query_of.begin());
}

absl::Status PlanVectors(const EncoderModel& model, const EncodeLimits& limits, bool is_query,
                         const EncodeWork& work, SequenceInput& sequence, EncodeOutput& output) {
  sequence.only_task = is_query ? kQueryTask : kDocumentTask;
  const HeadTask& task = work.tasks[static_cast<size_t>(sequence.only_task)];
  const Head::ResultSize size =
      model.heads.heads[task.head]->MaxResult(task.options, sequence.token_ids);
  output.vector_bytes += size.values * int64_t{sizeof(float)} +
                         sequence.len() * int64_t{sizeof(int32_t)};  // HeadResult::tokens
  if (output.vector_bytes <= limits.max_response_bytes) return absl::OkStatus();
  return Invalid("the vectors of the texts take ", output.vector_bytes, " bytes up to text ",
                 output.sequences.size(), " of queries and documents, the limit is ",
                 limits.max_response_bytes, ": ask for fewer pairs in one request");
}

void ScorePairs(const EncoderModel& model, std::vector<SequenceResult> results,
                EncodeOutput& output) {
  const size_t head = *model.heads.Find(TaskKind::kMultiVector);
  const int64_t dims = model.heads.heads[head]->MaxResult({}, {}).columns;
  const size_t queries = NumQueries(output);
  std::vector<std::vector<float>> vectors = TakeVectors(std::move(results), output);
  for (size_t i = 0; i < output.query_of.size(); ++i) {
    const std::vector<float> document = std::exchange(vectors[queries + i], {});
    const std::vector<float>& query = vectors[static_cast<size_t>(output.query_of[i])];
    output.sequences[queries + i].scores.assign(1, MaxSim(query, document, dims));
  }
  const auto first_document = output.sequences.begin() + static_cast<std::ptrdiff_t>(queries);
  output.queries.assign(std::make_move_iterator(output.sequences.begin()),
                        std::make_move_iterator(first_document));
  output.sequences.erase(output.sequences.begin(), first_document);
}

}  // namespace attendant
