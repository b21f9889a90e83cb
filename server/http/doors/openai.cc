// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/openai.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/answer_form.h"
#include "server/http/doors/dialects.h"
#include "server/http/doors/inputs.h"
#include "server/http/json/json_writer.h"
#include "server/requests/only_model.h"

namespace attendant {
namespace {

struct ErrorWords {
  absl::string_view type;
  absl::string_view code;  // JSON
};

ErrorWords WordsOf(const HttpFailure& failure) {
  switch (failure.code) {
    case 401:
      return {"authentication_error", "\"invalid_api_key\""};
    case 403:
      return {"permission_error", "null"};
    case 404:
      return {"invalid_request_error",
              absl::IsNotFound(failure.status) ? "\"model_not_found\"" : "null"};
    case 429:
      return {"rate_limit_error", "\"rate_limit_exceeded\""};
    default:
      return {failure.code < 500 ? "invalid_request_error" : "server_error", "null"};
  }
}

// `kOfTei`: embeddings have length 1, and long texts are cut, unless the request says no.
template <bool kOfTei>
class EmbeddingsRun final : public DoorRun {
 public:
  using DoorRun::DoorRun;

 private:
  absl::StatusOr<EncodeInput> FromJson(JsonView request) override {
    EncodeInput input;
    input.pooled = true;
    ATTENDANT_RETURN_IF_ERROR(SequencesFromJson(request, "input", limits(), input.sequences));
    ATTENDANT_RETURN_IF_ERROR(Base64FromJson(request, base64_));
    ATTENDANT_RETURN_IF_ERROR(CheckAnswerForm(request));
    const char* dims_field = request.Find("dimensions") ? "dimensions" : "output_dimension";
    ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, dims_field, input.dims));
    if (kOfTei || input.dims > 0) input.normalize = true;
    ATTENDANT_RETURN_IF_ERROR(NormalizeFromJson(request, input.normalize));
    ATTENDANT_RETURN_IF_ERROR(
        CutFromJson(request, kOfTei ? Truncation::kRight : Truncation::kNone, input.truncation));
    ATTENDANT_RETURN_IF_ERROR(PromptFromJson(request, model(), input));
    ATTENDANT_RETURN_IF_ERROR(CheckSpecialTokens(request));
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    json = "{\"object\":\"list\",\"data\":[";
    const int64_t tokens = output.tokens();
    for (size_t i = 0; i < output.sequences.size(); ++i) {
      const EncodedSequence& sequence = output.sequences[i];
      absl::StrAppend(&json, i == 0 ? "" : ",", "{\"object\":\"embedding\",\"index\":", i,
                      ",\"embedding\":");
      AppendEmbedding(sequence.result.pooled, json);
      json.push_back('}');
    }
    json += "],\"model\":";
    AppendJsonString(call().model, json);
    absl::StrAppend(&json, ",\"usage\":{\"prompt_tokens\":", tokens, ",\"total_tokens\":", tokens,
                    "}}");
  }

  void AppendEmbedding(const std::vector<float>& values, std::string& json) const {
    base64_ ? AppendJsonBase64(values, json) : AppendJsonFloats(values, json);
  }

  bool compressible() const override { return !base64_; }

  bool base64_ = false;
};

void AppendModel(absl::string_view name, absl::Time created, std::string& json) {
  json += "{\"id\":";
  AppendJsonString(name, json);
  absl::StrAppend(&json, ",\"object\":\"model\",\"created\":", absl::ToUnixSeconds(created),
                  ",\"owned_by\":\"attendant\"}");
}

std::set<std::string> ServingModels(const ModelRegistry& models) {
  std::set<std::string> names;
  for (const ModelStatus& status : models.List()) {
    if (!status.is_module && status.Serves()) names.insert(status.name);
  }
  return names;
}

absl::Status ListModels(const ModelRegistry& models, absl::Time created, std::string& json) {
  json = "{\"object\":\"list\",\"data\":[";
  for (const std::string& name : ServingModels(models)) {
    if (json.back() != '[') json.push_back(',');
    AppendModel(name, created, json);
  }
  json += "]}";
  return absl::OkStatus();
}

absl::Status DescribeModel(const ModelRegistry& models, const std::string& name, absl::Time created,
                           std::string& json) {
  if (!ServingModels(models).contains(name)) {
    return absl::NotFoundError(absl::StrCat("no model ", Quote(name)));
  }
  AppendModel(name, created, json);
  return absl::OkStatus();
}

std::string OpenAiSchema(bool cuts) {
  return absl::StrCat(
      R"({"type":"object","required":["input"],"properties":{"model":{"type":"string"},"input":)",
      kSequencesSchema, R"(,"dimensions":)", kCountSchema, R"(,"output_dimension":)", kCountSchema,
      R"(,"encoding_format":)", kEncodingFormatSchema, ",", AnswerFormProperties(),
      R"(,"user":{"type":"string"},"add_special_tokens":{"const":true},)", CutProperties(cuts), ",",
      kNormalizeProperties, ",", kPromptProperties, "}}");
}

constexpr char kOpenAiResponse[] = R"({"type":"object","properties":{"object":{"const":"list"},
"data":{"type":"array","items":{"type":"object","properties":{"object":{"const":"embedding"},
"index":{"type":"integer"},"embedding":{"oneOf":[{"type":"array","items":{"type":"number"}},
{"type":"string","contentEncoding":"base64"}]}}}},"model":{"type":"string"},
"usage":{"type":"object","properties":{"prompt_tokens":{"type":"integer"},
"total_tokens":{"type":"integer"}}}}})";

template <bool kOfTei>
HttpRoute EmbeddingsRoute(const DoorDependencies& dependencies, std::string path,
                          std::string summary) {
  return DoorRoute<EmbeddingsRun<kOfTei>>(
      dependencies, std::move(path), Method::kOpenAiEmbeddings, FieldOrOnlyModel(Embeds),
      OpenAiError, {std::move(summary), OpenAiSchema(kOfTei), kOpenAiResponse});
}

}  // namespace

HttpResponse OpenAiError(const HttpFailure& failure) {
  const ErrorWords words = WordsOf(failure);
  HttpResponse response{.code = failure.code, .content_type = "application/json"};
  response.body = "{\"error\":{\"message\":";
  AppendJsonString(failure.status.message(), response.body);
  absl::StrAppend(&response.body, ",\"type\":\"", words.type,
                  "\",\"param\":null,\"code\":", words.code, "}}");
  return response;
}

absl::Status CheckSpecialTokens(JsonView request) {
  bool added = true;
  ATTENDANT_RETURN_IF_ERROR(request.Read("add_special_tokens", added));
  if (added) return absl::OkStatus();
  return absl::InvalidArgumentError("add_special_tokens must be true, not false");
}

absl::Status Base64FromJson(JsonView request, bool& base64) {
  std::string format = "float";
  ATTENDANT_RETURN_IF_ERROR(request.Read("encoding_format", format));
  base64 = format == "base64";
  if (base64 || format == "float") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("encoding_format must be float or base64, not ", Quote(format)));
}

absl::Status PromptTokensFromJson(JsonView request, Truncation& truncation) {
  std::optional<int64_t> tokens;
  ATTENDANT_RETURN_IF_ERROR(request.Read("truncate_prompt_tokens", tokens));
  if (tokens) truncation = Truncation::kRight;
  if (!tokens || *tokens == -1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("truncate_prompt_tokens must be -1, the model's own limit, not ", *tokens));
}

HttpRoute NormalizedEmbeddingsRoute(const DoorDependencies& dependencies, std::string path,
                                    std::string summary) {
  return EmbeddingsRoute<true>(dependencies, std::move(path), std::move(summary));
}

std::vector<HttpRoute> OpenAiRoutes(const DoorDependencies& dependencies) {
  const ModelRegistry& models = dependencies.encode.requests.models;
  const absl::Time created = absl::Now();
  return {EmbeddingsRoute<false>(dependencies, "/v1/embeddings",
                                 "OpenAI: embeddings of texts or token ids"),
          MakeHttpRoute("GET", "/v1/models", MethodGroup::kRead, OpenAiError,
                        Small(dependencies,
                              [&models, created](const HttpExchange&, std::string& json) {
                                return ListModels(models, created, json);
                              }),
                        {"OpenAI: the models that serve", "", R"({"type":"object"})"}),
          MakeHttpRoute("GET", "/v1/models/{model}", MethodGroup::kRead, OpenAiError,
                        Small(dependencies,
                              [&models, created](const HttpExchange& exchange, std::string& json) {
                                return DescribeModel(models, exchange.parameters[0], created, json);
                              }),
                        {"OpenAI: one model", "", R"({"type":"object"})"})};
}

}  // namespace attendant
