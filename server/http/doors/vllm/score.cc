// SPDX-License-Identifier: Apache-2.0
// /score and /v1/score of vLLM: each text of a list against one query, or against its own.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/cohere/cohere.h"
#include "server/http/doors/cosine.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/openai.h"
#include "server/http/doors/translation.h"
#include "server/http/doors/vllm/parts.h"
#include "server/http/json/json_writer.h"
#include "server/requests/only_model.h"
#include "server/requests/ranking.h"

namespace attendant {
namespace {

// What the two lists of texts are called. The first names that a request has count.
struct ListNames {
  absl::string_view first, second;
};
constexpr ListNames kNames[] = {
    {"queries", "documents"}, {"queries", "items"}, {"data_1", "data_2"}, {"text_1", "text_2"}};

const ListNames& NamesIn(JsonView request) {
  for (const ListNames& names : kNames) {
    if (request.Find(names.first) && request.Find(names.second)) return names;
  }
  for (const ListNames& names : kNames) {
    if (request.Find(names.first) || request.Find(names.second)) return names;
  }
  return *std::rbegin(kNames);
}

absl::StatusOr<std::vector<std::string>> TextsOf(JsonView request, absl::string_view field,
                                                 const EncodeLimits& limits) {
  const std::optional<JsonView> value = request.Find(field);
  if (value && value->kind() == JsonView::Kind::kString) {
    return std::vector<std::string>{std::string(value->String())};
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const JsonView list, ListFromJson(request, field, "a string or an array of strings", limits));
  std::vector<std::string> texts;
  ATTENDANT_RETURN_IF_ERROR(list.ForEach([&](JsonView text) {
    if (text.kind() != JsonView::Kind::kString) {
      return WrongJsonType(absl::StrCat(field, "[", texts.size(), "]"), "a string", text);
    }
    texts.emplace_back(text.String());
    return absl::OkStatus();
  }));
  return texts;
}

// The texts of a request: one first text for all second ones, or as many.
struct TextLists {
  std::vector<std::string> first, second;
};

absl::StatusOr<TextLists> ListsFromJson(JsonView request, const EncodeLimits& limits) {
  const ListNames& names = NamesIn(request);
  TextLists lists;
  ATTENDANT_ASSIGN_OR_RETURN(lists.first, TextsOf(request, names.first, limits));
  ATTENDANT_ASSIGN_OR_RETURN(lists.second, TextsOf(request, names.second, limits));
  const size_t first = lists.first.size(), second = lists.second.size();
  if (first != 1 && first != second) {
    return absl::InvalidArgumentError(absl::StrCat(names.first, " has ", first, " texts and ",
                                                   names.second, " has ", second, ": ", names.first,
                                                   " must have one, or as many"));
  }
  return lists;
}

// What all models read. `document_tokens`: the most of a text of the second list; 0: unset.
absl::Status OptionsFromJson(JsonView request, EncodeInput& input, int64_t& document_tokens) {
  ATTENDANT_RETURN_IF_ERROR(VllmTruncationFromJson(request, input));
  ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, "max_tokens_per_doc", document_tokens, 0));
  int64_t query_tokens = 0;
  ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, "max_tokens_per_query", query_tokens, 0));
  if (query_tokens == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "max_tokens_per_query must be 0, a query is not cut by itself, not ", query_tokens));
}

// By a reranker, or by a model that compares the vectors of tokens. The activation is the model's.
class PairsTranslation final : public DoorTranslation {
 public:
  explicit PairsTranslation(VllmAnswer answer) : answer_(std::move(answer)) {}

  absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) override {
    EncodeInput input;
    input.scores = input.one_score = true;
    ATTENDANT_RETURN_IF_ERROR(OptionsFromJson(request, input, input.max_tokens));
    bool activation = true;
    ATTENDANT_RETURN_IF_ERROR(request.Read("use_activation", activation));
    if (!activation) input.score_activation = ScoreActivation::kNone;
    ATTENDANT_ASSIGN_OR_RETURN(TextLists lists, ListsFromJson(request, limits));
    if (lists.first.size() == 1) {
      ATTENDANT_RETURN_IF_ERROR(CheckQuery(NamesIn(request).first, lists.first[0],
                                           static_cast<int64_t>(lists.second.size())));
    }
    std::vector<std::shared_ptr<const std::string>> first;
    for (std::string& text : lists.first) {
      first.push_back(std::make_shared<const std::string>(std::move(text)));
    }
    for (size_t i = 0; i < lists.second.size(); ++i) {
      input.sequences.emplace_back(TextPair{.first = first[first.size() == 1 ? 0 : i],
                                            .second = std::move(lists.second[i])});
    }
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    AppendVllmAnswer(answer_, output.sequences.size(), output.tokens(), json,
                     [&](size_t i) { AppendJsonFloat(output.sequences[i].scores[0], json); });
  }

 private:
  const VllmAnswer answer_;
};

// By the cosine of two embeddings, which no activation follows.
class CosineTranslation final : public DoorTranslation {
 public:
  explicit CosineTranslation(VllmAnswer answer) : answer_(std::move(answer)) {}

  absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) override {
    EncodeInput input;
    input.pooled = true;
    input.normalize = true;
    int64_t document_tokens = 0;
    ATTENDANT_RETURN_IF_ERROR(OptionsFromJson(request, input, document_tokens));
    if (document_tokens > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "max_tokens_per_doc must be 0 for a model that embeds, not ", document_tokens));
    }
    ATTENDANT_ASSIGN_OR_RETURN(TextLists lists, ListsFromJson(request, limits));
    first_ = lists.first.size();
    for (std::vector<std::string>* texts : {&lists.first, &lists.second}) {
      for (std::string& text : *texts) input.sequences.emplace_back(std::move(text));
    }
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    AppendVllmAnswer(answer_, output.sequences.size() - first_, output.tokens(), json,
                     [&](size_t i) {
                       const auto& a = output.sequences[first_ == 1 ? 0 : i].result.pooled;
                       const auto& b = output.sequences[first_ + i].result.pooled;
                       AppendJsonFloat(CosineOfNormalized(a, b), json);
                     });
  }

 private:
  const VllmAnswer answer_;
  size_t first_ = 1;  // sequences before the second texts
};

class ScoreRun final : public TranslatedRun {
 public:
  using TranslatedRun::TranslatedRun;

 private:
  std::unique_ptr<DoorTranslation> Choose(JsonView /*request*/) override {
    VllmAnswer answer{
        .id = AnswerId(call()), .model = model().name, .object = "score", .field = "score"};
    if (CanRank(model()) || !Embeds(model().Facts())) {
      return std::make_unique<PairsTranslation>(std::move(answer));
    }
    return std::make_unique<CosineTranslation>(std::move(answer));
  }
};

std::string ScoreSchema() {
  std::string schema = "{\"oneOf\":[";
  for (const ListNames& names : kNames) {
    constexpr absl::string_view kTexts =
        R"({"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]})";
    absl::StrAppend(&schema, schema.back() == '[' ? "" : ",", R"({"type":"object","required":[")",
                    names.first, R"(",")", names.second, R"("],"properties":{)", VllmProperties(),
                    R"(,")", names.first, R"(":)", kTexts, R"(,")", names.second, R"(":)", kTexts,
                    R"(,"max_tokens_per_doc":{"type":"integer","minimum":0},)"
                    R"("max_tokens_per_query":{"type":"integer","enum":[0]}}})");
  }
  return schema + "]}";
}

HttpRoute ScoreRoute(const DoorDependencies& dependencies, const char* path) {
  return DoorRoute<ScoreRun>(dependencies, path, Method::kVllmScore, FieldOrOnlyModel(Ranks),
                             OpenAiError,
                             {"vLLM: scores of pairs of texts", ScoreSchema(),
                              VllmAnswerSchema("score", "score", R"({"type":"number"})")});
}

}  // namespace

std::vector<HttpRoute> VllmScoreRoutes(const DoorDependencies& dependencies) {
  return {ScoreRoute(dependencies, "/score"), ScoreRoute(dependencies, "/v1/score")};
}

}  // namespace attendant
