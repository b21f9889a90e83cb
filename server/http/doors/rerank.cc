// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/rerank.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/cohere.h"
#include "server/http/doors/inputs.h"
#include "server/http/json/json_writer.h"
#include "server/requests/ranking.h"

namespace attendant {
namespace {

// Whether an answer has the documents where the request does not say it.
constexpr bool kCohereDocuments = false, kJinaDocuments = true;

template <bool kDocuments>
class RerankRun final : public DoorRun {
 public:
  using DoorRun::DoorRun;

 private:
  absl::StatusOr<EncodeInput> FromJson(JsonView request) override {
    EncodeInput input = ScoresInput();
    ATTENDANT_RETURN_IF_ERROR(
        PairsFromJson(request, "query", "documents", limits(), input.sequences));
    ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, "max_tokens_per_doc", input.max_tokens));
    ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, "top_n", top_));
    if (top_ == 0) top_ = static_cast<int64_t>(input.sequences.size());
    bool documents = kDocuments;
    ATTENDANT_RETURN_IF_ERROR(request.Read("return_documents", documents));
    if (documents) documents_ = SecondTexts(input.sequences);
    return input;
  }

  int64_t TextBytes(const EncodeOutput& output) const override {
    return DoorRun::TextBytes(output) + JsonStringBytes(documents_);
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    json = "{\"id\":";
    AppendJsonString(AnswerId(call()), json);
    json += ",\"model\":";
    AppendJsonString(model().name, json);
    json += ",\"results\":[";
    int64_t left = top_;
    for (const size_t index : ByScore(output)) {
      if (left-- == 0) break;
      absl::StrAppend(&json, json.back() == '[' ? "" : ",", "{\"index\":", index,
                      ",\"relevance_score\":");
      AppendJsonFloat(output.sequences[index].scores[0], json);
      if (!documents_.empty()) {
        json += ",\"document\":{\"text\":";
        AppendJsonString(documents_[index], json);
        json += "}";
      }
      json += "}";
    }
    absl::StrAppend(&json, "],\"usage\":{\"total_tokens\":", output.tokens(),
                    "},\"meta\":{\"api_version\":{\"version\":\"2\"},\"billed_units\":{"
                    "\"search_units\":1}}}");
  }

  int64_t top_ = 0;
  std::vector<std::string> documents_;  // empty: not asked for
};

std::string RerankRequestSchema(bool documents) {
  return absl::StrCat(
      R"({"type":"object","required":["model","query","documents"],"properties":{)"
      R"("model":{"type":"string"},"query":{"type":"string"},)"
      R"("documents":{"type":"array","items":{"oneOf":[{"type":"string"},{"type":"object",)"
      R"("required":["text"],"properties":{"text":{"type":"string"}}}]}},"top_n":)",
      kCountSchema, R"(,"max_tokens_per_doc":)", kCountSchema,
      R"(,"return_documents":{"type":"boolean","default":)", documents ? "true" : "false", "}}}");
}

constexpr char kRerankResponse[] = R"({"type":"object","properties":{"id":{"type":"string"},
"model":{"type":"string"},"results":{"type":"array","items":{"type":"object","properties":{
"index":{"type":"integer"},"relevance_score":{"type":"number"},
"document":{"type":"object","properties":{"text":{"type":"string"}}}}}},
"usage":{"type":"object","properties":{"total_tokens":{"type":"integer"}}},
"meta":{"type":"object"}}})";

template <bool kDocuments>
HttpRoute RerankRoute(const DoorDependencies& dependencies, const char* path, const char* whose) {
  return MakeHttpRoute("POST", path, MethodGroup::kInfer, CohereError,
                       [&dependencies](std::unique_ptr<HttpExchange> exchange) {
                         StartDoorRun<RerankRun<kDocuments>>(dependencies, Method::kRerank,
                                                             std::move(exchange));
                       },
                       {absl::StrCat(whose, ": documents by how well they answer a query"),
                        RerankRequestSchema(kDocuments), kRerankResponse});
}

}  // namespace

std::vector<HttpRoute> RerankRoutes(const DoorDependencies& dependencies) {
  return {RerankRoute<kCohereDocuments>(dependencies, "/v2/rerank", "Cohere"),
          RerankRoute<kJinaDocuments>(dependencies, "/v1/rerank", "Jina")};
}

}  // namespace attendant
