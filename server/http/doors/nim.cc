// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/nim.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/cohere/cohere.h"
#include "server/http/doors/inputs.h"
#include "server/http/json/json_writer.h"
#include "server/requests/ranking.h"

namespace attendant {
namespace {

class RankingRun final : public DoorRun {
 public:
  using DoorRun::DoorRun;

 private:
  absl::StatusOr<EncodeInput> FromJson(JsonView request) override {
    EncodeInput input = ScoresInput();
    input.score_activation = ScoreActivation::kNone;
    ATTENDANT_RETURN_IF_ERROR(TruncationWordFromJson(request, Truncation::kNone, input.truncation));
    const std::optional<JsonView> query = request.Find("query");
    if (!query) return absl::InvalidArgumentError("query is missing");
    if (query->kind() != JsonView::Kind::kObject) {
      return WrongJsonType("query", "an object", *query);
    }
    ATTENDANT_RETURN_IF_ERROR(PairsFromJson("query.text", query->Find("text"), request, "passages",
                                            limits(), input.sequences));
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    json = "{\"rankings\":";
    AppendJsonArray(ByScore(output), json, [&](size_t index) {
      absl::StrAppend(&json, "{\"index\":", index, ",\"logit\":");
      AppendJsonFloat(output.sequences[index].scores[0], json);
      json += "}";
    });
    absl::StrAppend(&json, ",\"usage\":{\"prompt_tokens\":", output.tokens(),
                    ",\"total_tokens\":", output.tokens(), "}}");
  }
};

constexpr char kRequest[] = R"({"type":"object","required":["model","query","passages"],
"properties":{"model":{"type":"string"},"query":{"type":"object","required":["text"],
"properties":{"text":{"type":"string"}}},"passages":{"type":"array","items":{"type":"object",
"required":["text"],"properties":{"text":{"type":"string"}}}},
"truncate":{"enum":["START","END","NONE"],"default":"NONE"}}})";
constexpr char kResponse[] = R"({"type":"object","properties":{"rankings":{"type":"array",
"items":{"type":"object","properties":{"index":{"type":"integer"},"logit":{"type":"number"}}}},
"usage":{"type":"object","properties":{"prompt_tokens":{"type":"integer"},
"total_tokens":{"type":"integer"}}}}})";

}  // namespace

std::vector<HttpRoute> NimRoutes(const DoorDependencies& dependencies) {
  return {DoorRoute<RankingRun>(
      dependencies, "/v1/ranking", Method::kRerank, FieldModel(), CohereError,
      {"NVIDIA NIM: passages by how well they answer a query", kRequest, kResponse})};
}

}  // namespace attendant
