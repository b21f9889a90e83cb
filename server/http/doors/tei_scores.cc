// SPDX-License-Identifier: Apache-2.0
// /rerank and /predict of text-embeddings-inference.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/ranking.h"
#include "server/http/doors/tei_parts.h"
#include "server/http/json/json_writer.h"

namespace attendant {
namespace {

absl::Status ActivationFromJson(JsonView request, EncodeInput& input) {
  bool raw = false;
  ATTENDANT_RETURN_IF_ERROR(request.Read("raw_scores", raw));
  if (raw) input.score_activation = ScoreActivation::kNone;
  return absl::OkStatus();
}

class RerankRun final : public DoorRun {
 public:
  using DoorRun::DoorRun;

 private:
  absl::StatusOr<EncodeInput> FromJson(JsonView request) override {
    EncodeInput input = ScoresInput();
    ATTENDANT_RETURN_IF_ERROR(TeiTruncationFromJson(request, input.truncation));
    ATTENDANT_RETURN_IF_ERROR(ActivationFromJson(request, input));
    ATTENDANT_RETURN_IF_ERROR(PairsFromJson(request, "query", "texts", limits(), input.sequences));
    bool texts = false;
    ATTENDANT_RETURN_IF_ERROR(request.Read("return_text", texts));
    if (texts) texts_ = SecondTexts(input.sequences);
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    json = "[";
    for (const size_t index : ByScore(output)) {
      absl::StrAppend(&json, json.size() == 1 ? "" : ",", "{\"index\":", index);
      if (!texts_.empty()) {
        json += ",\"text\":";
        AppendJsonString(texts_[index], json);
      }
      json += ",\"score\":";
      AppendJsonFloat(output.sequences[index].scores[0], json);
      json += "}";
    }
    json += "]";
  }

  std::vector<std::string> texts_;  // empty: not asked for
};

// A text, or one or two texts in an array.
absl::Status SequenceFromJson(const std::string& where, JsonView value, Sequences& sequences) {
  using Kind = JsonView::Kind;
  if (value.kind() == Kind::kString) {
    sequences.emplace_back(std::string(value.String()));
    return absl::OkStatus();
  }
  constexpr char kExpected[] = "a string, or an array of one or two strings";
  if (value.kind() != Kind::kArray || value.size() < 1 || value.size() > 2) {
    return WrongJsonType(where, kExpected, value);
  }
  std::vector<std::string> texts;
  ATTENDANT_RETURN_IF_ERROR(value.ForEach([&](JsonView text) {
    if (text.kind() != Kind::kString) return WrongJsonType(where, kExpected, text);
    texts.emplace_back(text.String());
    return absl::OkStatus();
  }));
  if (texts.size() == 1) {
    sequences.emplace_back(std::move(texts[0]));
  } else {
    sequences.emplace_back(TextPair{.first = std::make_shared<const std::string>(texts[0]),
                                    .second = std::move(texts[1])});
  }
  return absl::OkStatus();
}

class PredictRun final : public DoorRun {
 public:
  using DoorRun::DoorRun;

 private:
  absl::StatusOr<EncodeInput> FromJson(JsonView request) override {
    EncodeInput input;
    input.scores = true;
    ATTENDANT_RETURN_IF_ERROR(TeiTruncationFromJson(request, input.truncation));
    ATTENDANT_RETURN_IF_ERROR(ActivationFromJson(request, input));
    const std::optional<JsonView> inputs = request.Find("inputs");
    if (!inputs) return absl::InvalidArgumentError("inputs is missing");
    many_ = IsMany(*inputs);
    if (!many_) {
      ATTENDANT_RETURN_IF_ERROR(SequenceFromJson("inputs", *inputs, input.sequences));
      return input;
    }
    if (inputs->size() > static_cast<size_t>(limits().max_request_sequences)) {
      return absl::InvalidArgumentError(absl::StrCat("inputs has ", inputs->size(),
                                                     " elements, the limit is ",
                                                     limits().max_request_sequences));
    }
    ATTENDANT_RETURN_IF_ERROR(inputs->ForEach([&input](JsonView element) {
      return SequenceFromJson(absl::StrCat("inputs[", input.sequences.size(), "]"), element,
                              input.sequences);
    }));
    return input;
  }

  // ["a", "b"] is a pair, [["a"], ["b"]] are two texts.
  static bool IsMany(JsonView inputs) {
    bool many = false;
    if (inputs.kind() != JsonView::Kind::kArray) return false;
    (void)inputs.ForEach([&many](JsonView element) {
      many |= element.kind() == JsonView::Kind::kArray;
      return absl::CancelledError();  // the first one decides
    });
    return many;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    json = many_ ? "[" : "";
    for (const EncodedSequence& sequence : output.sequences) {
      if (&sequence != &output.sequences.front()) json += ",";
      AppendLabels(sequence.scores, json);
    }
    if (many_) json += "]";
  }

  void AppendLabels(const std::vector<float>& scores, std::string& json) const {
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&scores](size_t a, size_t b) { return scores[a] > scores[b]; });
    json += "[";
    for (const size_t label : order) {
      if (json.back() != '[') json += ",";
      json += "{\"score\":";
      AppendJsonFloat(scores[label], json);
      json += ",\"label\":";
      AppendJsonString(model().classifier->labels[label], json);
      json += "}";
    }
    json += "]";
  }

  bool many_ = false;
};

constexpr char kRerankSchema[] = R"({"type":"object","required":["query","texts"],"properties":{
"query":{"type":"string"},"texts":{"type":"array","items":{"type":"string"}},
"truncate":{"type":"boolean","default":false},"truncation_direction":{"enum":["right","Right"]},
"raw_scores":{"type":"boolean","default":false},
"return_text":{"type":"boolean","default":false}}})";

constexpr char kRanks[] = R"({"type":"array","items":{"type":"object","properties":{
"index":{"type":"integer"},"text":{"type":"string"},"score":{"type":"number"}}}})";

constexpr char kPredictSchema[] = R"({"type":"object","required":["inputs"],"properties":{
"inputs":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},
{"type":"array","items":{"type":"array","items":{"type":"string"}}}]},
"truncate":{"type":"boolean","default":false},"truncation_direction":{"enum":["right","Right"]},
"raw_scores":{"type":"boolean","default":false}}})";

constexpr char kPredictions[] = R"({"type":"array","items":{"oneOf":[{"type":"object","properties":{
"score":{"type":"number"},"label":{"type":"string"}}},{"type":"array"}]}})";

}  // namespace

std::vector<HttpRoute> TeiScoreRoutes(const DoorDependencies& dependencies) {
  return {
      TeiRoute<RerankRun>(dependencies, "/rerank", Method::kTeiRerank,
                          {"TEI: texts by how well they answer a query", kRerankSchema, kRanks}),
      TeiRoute<PredictRun>(dependencies, "/predict", Method::kTeiPredict,
                           {"TEI: labels of a text, a pair of texts, or many of these",
                            kPredictSchema, kPredictions})};
}

}  // namespace attendant
