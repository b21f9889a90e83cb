// SPDX-License-Identifier: Apache-2.0
// /rerank and /predict of text-embeddings-inference.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/cohere/cohere.h"
#include "server/http/doors/cohere/rerank.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/tei/parts.h"
#include "server/http/json/json_writer.h"
#include "server/requests/only_model.h"
#include "server/requests/ranking.h"

namespace attendant {
namespace {

// The field of a request in Jina's shape; TEI's does not have it.
constexpr absl::string_view kDocuments = "documents";

absl::Status ScoreOptionsFromJson(JsonView request, EncodeInput& input) {
  ATTENDANT_RETURN_IF_ERROR(TeiTruncationFromJson(request, input));
  bool raw = false;
  ATTENDANT_RETURN_IF_ERROR(request.Read("raw_scores", raw));
  if (raw) input.score_activation = ScoreActivation::kNone;
  return absl::OkStatus();
}

class RerankTranslation final : public DoorTranslation {
 public:
  absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) override {
    EncodeInput input = ScoresInput();
    ATTENDANT_RETURN_IF_ERROR(ScoreOptionsFromJson(request, input));
    ATTENDANT_RETURN_IF_ERROR(PairsFromJson(request, "query", "texts", limits, input.sequences));
    bool texts = false;
    ATTENDANT_RETURN_IF_ERROR(request.Read("return_text", texts));
    if (texts) texts_ = SecondTexts(input.sequences);
    return input;
  }

  int64_t TextBytes(const EncodeOutput& output) const override {
    return FloatTextBytes(output) + JsonStringBytes(texts_);
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    AppendJsonArray(ByScore(output), json, [&](size_t index) {
      absl::StrAppend(&json, "{\"index\":", index);
      if (!texts_.empty()) {
        json += ",\"text\":";
        AppendJsonString(texts_[index], json);
      }
      json += ",\"score\":";
      AppendJsonFloat(output.sequences[index].scores[0], json);
      json += "}";
    });
  }

 private:
  std::vector<std::string> texts_;  // empty: not asked for
};

class PredictTranslation final : public DoorTranslation {
 public:
  explicit PredictTranslation(const EncoderModel& model) : model_(model) {}

  absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) override {
    if (!model_.classifier.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", model_.name, "' is no classifier: it has no labels"));
    }
    EncodeInput input;
    input.scores = true;
    ATTENDANT_RETURN_IF_ERROR(ScoreOptionsFromJson(request, input));
    ATTENDANT_RETURN_IF_ERROR(
        TextsOrPairsFromJson(request, "inputs", limits, input.sequences, many_));
    return input;
  }

  // Each sequence has all labels.
  int64_t TextBytes(const EncodeOutput& output) const override {
    constexpr int64_t kEntryBytes = 24;  // {"score":,"label":},
    const std::vector<std::string>& labels = model_.classifier->labels;
    const int64_t entries =
        JsonStringBytes(labels) + kEntryBytes * static_cast<int64_t>(labels.size());
    return FloatTextBytes(output) + entries * static_cast<int64_t>(output.sequences.size());
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    const auto append = [&](const EncodedSequence& sequence) {
      AppendLabels(sequence.scores, json);
    };
    if (!many_) return append(output.sequences[0]);
    AppendJsonArray(output.sequences, json, append);
  }

 private:
  void AppendLabels(const std::vector<float>& scores, std::string& json) const {
    AppendJsonArray(ByScore(scores), json, [&](size_t label) {
      json += "{\"score\":";
      AppendJsonFloat(scores[label], json);
      json += ",\"label\":";
      AppendJsonString(model_.classifier->labels[label], json);
      json += "}";
    });
  }

  const EncoderModel& model_;
  bool many_ = false;
};

class PredictRun final : public TranslatedRun {
 public:
  using TranslatedRun::TranslatedRun;

 private:
  std::unique_ptr<DoorTranslation> Choose(JsonView /*request*/) override {
    return NewTeiPredict(model());
  }
};

// As TEI's clients ask, with `texts`, and as those of vLLM and Infinity do, with `documents`.
class RerankPathRun final : public TranslatedRun {
 public:
  using TranslatedRun::TranslatedRun;

 private:
  std::unique_ptr<DoorTranslation> Choose(JsonView request) override {
    if (request.Find(kDocuments)) return NewJinaRerank(AnswerId(call()), model().name);
    return NewTeiRerank();
  }
};

// A header that names a model goes before the field: a proxy may have set it.
absl::StatusOr<JsonMessageModel> RerankModel(const DoorDependencies& dependencies,
                                             const HttpExchange& exchange) {
  const DoorModel find_model = exchange.header(kModelHeader) ? HeaderOrOnlyModel(Ranks)
                                                             : FieldOrOnlyModel(Ranks, kDocuments);
  return find_model(dependencies, exchange);
}

std::string ScoreOptionsProperties() {
  return absl::StrCat(kTeiTruncationProperties,
                      R"(,"raw_scores":{"type":"boolean","default":false})");
}

std::string RerankSchema() {
  return absl::StrCat(R"({"oneOf":[{"type":"object","required":["query","texts"],"properties":{)"
                      R"("query":{"type":"string"},"texts":)",
                      kTextsSchema, ",", ScoreOptionsProperties(),
                      R"(,"return_text":{"type":"boolean","default":false}}},)", JinaRerankSchema(),
                      "]}");
}

constexpr char kRanks[] = R"({"type":"array","items":{"type":"object","properties":{
"index":{"type":"integer"},"text":{"type":"string"},"score":{"type":"number"}}}})";

std::string PredictSchema() {
  return absl::StrCat(R"({"type":"object","required":["inputs"],"properties":{"inputs":{"oneOf":[)"
                      R"({"type":"string"},)",
                      kTextsSchema, R"(,{"type":"array","items":)", kTextsSchema, "}]},",
                      ScoreOptionsProperties(), "}}");
}

constexpr char kPredictions[] = R"({"type":"array","items":{"oneOf":[{"type":"object","properties":{
"score":{"type":"number"},"label":{"type":"string"}}},{"type":"array"}]}})";

}  // namespace

std::unique_ptr<DoorTranslation> NewTeiRerank() { return std::make_unique<RerankTranslation>(); }
std::unique_ptr<DoorTranslation> NewTeiPredict(const EncoderModel& model) {
  return std::make_unique<PredictTranslation>(model);
}

std::vector<HttpRoute> TeiScoreRoutes(const DoorDependencies& dependencies) {
  return {
      DoorRoute<RerankPathRun>(dependencies, "/rerank", Method::kTeiRerank, RerankModel, TeiError,
                               {"TEI: texts by how well they answer a query", RerankSchema(),
                                absl::StrCat("{\"oneOf\":[", kRanks, ",", kRerankResponse, "]}")}),
      DoorRoute<PredictRun>(dependencies, "/predict", Method::kTeiPredict,
                            HeaderOrOnlyModel(Classifies), TeiError,
                            {"TEI: labels of a text, a pair of texts, or many of these",
                             PredictSchema(), kPredictions})};
}

}  // namespace attendant
