// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/cohere/rerank.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/answer_form.h"
#include "server/http/doors/cohere/cohere.h"
#include "server/http/doors/dialects.h"
#include "server/http/doors/inputs.h"
#include "server/http/json/json_writer.h"
#include "server/requests/ranking.h"

namespace attendant {
namespace {

// What differs between the clients.
struct RerankDialect {
  bool has_documents;  // the answer has them where the request does not say it
  int64_t min_top;     // of top_n
};
constexpr RerankDialect kCohere{.has_documents = false, .min_top = 1};
constexpr RerankDialect kJina{.has_documents = true, .min_top = 0};  // 0: all, as in vLLM

class DocumentsTranslation final : public DoorTranslation {
 public:
  DocumentsTranslation(std::string id, std::string model, const RerankDialect& dialect)
      : id_(std::move(id)), model_(std::move(model)), dialect_(dialect) {}

  absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) override {
    EncodeInput input = ScoresInput();
    ATTENDANT_RETURN_IF_ERROR(
        PairsFromJson(request, "query", "documents", limits, input.sequences));
    ATTENDANT_RETURN_IF_ERROR(CheckOnlyWord(request, "rank_fields", "text"));
    ATTENDANT_RETURN_IF_ERROR(RawScoresFromJson(request, input));
    ATTENDANT_RETURN_IF_ERROR(CutFromJson(request, Truncation::kRight, input.truncation));
    ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, "max_tokens_per_doc", input.max_tokens));
    ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, "top_n", top_, dialect_.min_top));
    if (top_ == 0) top_ = static_cast<int64_t>(input.sequences.size());
    bool documents = dialect_.has_documents;
    ATTENDANT_RETURN_IF_ERROR(request.Read("return_documents", documents));
    if (documents) documents_ = SecondTexts(input.sequences);
    return input;
  }

  int64_t TextBytes(const EncodeOutput& output) const override {
    return FloatTextBytes(output) + JsonStringBytes(documents_);
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    json = "{\"id\":";
    AppendJsonString(id_, json);
    json += ",\"model\":";
    AppendJsonString(model_, json);
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
    absl::StrAppend(&json, "],\"usage\":{\"prompt_tokens\":", output.tokens(),
                    ",\"total_tokens\":", output.tokens(),
                    "},\"meta\":{\"api_version\":{\"version\":\"2\"},\"billed_units\":{"
                    "\"search_units\":1}}}");
  }

 private:
  const std::string id_;
  const std::string model_;
  const RerankDialect dialect_;
  int64_t top_ = 0;
  std::vector<std::string> documents_;  // empty: not asked for
};

template <RerankDialect kDialect>
class RerankRun final : public TranslatedRun {
 public:
  using TranslatedRun::TranslatedRun;

 private:
  std::unique_ptr<DoorTranslation> Choose(JsonView /*request*/) override {
    return std::make_unique<DocumentsTranslation>(AnswerId(call()), model().name, kDialect);
  }
};

// `model`: a request must name one.
std::string RerankRequestSchema(const RerankDialect& dialect, bool model) {
  return absl::StrCat(
      R"({"type":"object","required":[)", model ? "\"model\"," : "",
      R"("query","documents"],"properties":{)"
      R"("model":{"type":"string"},"query":{"type":"string"},)"
      R"("documents":{"type":"array","items":{"oneOf":[{"type":"string"},{"type":"object",)"
      R"("required":["text"],"properties":{"text":{"type":"string"}}}]}},)"
      R"("top_n":{"type":"integer","minimum":)",
      dialect.min_top, R"(},"max_tokens_per_doc":)", kCountSchema,
      R"(,"return_documents":{"type":"boolean","default":)",
      dialect.has_documents ? "true" : "false", "},", CutProperties(/*cuts=*/true), ",",
      kRawScoresProperties, R"(,"rank_fields":{"type":"array","items":{"const":"text"}}}})");
}

// Clients of Jina read `detail`. Those of Cohere's first version ask here too.
HttpResponse JinaError(const HttpFailure& failure) {
  std::string detail = ",\"detail\":";
  AppendJsonString(failure.status.message(), detail);
  return JsonFailure(failure, "message", detail);
}

template <RerankDialect kDialect>
HttpRoute RerankRoute(const DoorDependencies& dependencies, const char* path, const char* whose,
                      HttpErrorShape error) {
  return DoorRoute<RerankRun<kDialect>>(
      dependencies, path, Method::kRerank, FieldModel(), error,
      {absl::StrCat(whose, ": documents by how well they answer a query"),
       RerankRequestSchema(kDialect, true), kRerankResponse});
}

}  // namespace

std::unique_ptr<DoorTranslation> NewJinaRerank(std::string id, std::string model) {
  return std::make_unique<DocumentsTranslation>(std::move(id), std::move(model), kJina);
}
std::string JinaRerankSchema() { return RerankRequestSchema(kJina, /*model=*/false); }

std::vector<HttpRoute> RerankRoutes(const DoorDependencies& dependencies) {
  return {RerankRoute<kCohere>(dependencies, "/v2/rerank", "Cohere", CohereError),
          RerankRoute<kJina>(dependencies, "/v1/rerank", "Jina", JinaError)};
}

}  // namespace attendant
