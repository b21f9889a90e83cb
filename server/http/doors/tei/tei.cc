// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/tei/tei.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/cosine.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/openai.h"
#include "server/http/doors/tei/parts.h"
#include "server/http/json/json_writer.h"
#include "server/requests/only_model.h"

namespace attendant {
namespace {

absl::string_view ErrorTypeOf(int code) {
  switch (code) {
    case 429:
      return "Overloaded";
    case 503:
      return "Unhealthy";
    default:
      return code < 500 ? "Validation" : "Backend";
  }
}

class EmbedTranslation final : public DoorTranslation {
 public:
  absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) override {
    EncodeInput input;
    input.pooled = true;
    input.normalize = true;
    ATTENDANT_RETURN_IF_ERROR(TeiOptionsFromJson(request, input));
    ATTENDANT_RETURN_IF_ERROR(SequencesFromJson(request, "inputs", limits, input.sequences));
    ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, "dimensions", input.dims));
    ATTENDANT_RETURN_IF_ERROR(request.Read("normalize", input.normalize));
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    AppendJsonArray(output.sequences, json, [&json](const EncodedSequence& sequence) {
      AppendJsonFloats(sequence.result.pooled, json);
    });
  }
};

class EmbedAllTranslation final : public DoorTranslation {
 public:
  absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) override {
    EncodeInput input;
    input.last_hidden_state = true;
    ATTENDANT_RETURN_IF_ERROR(TeiOptionsFromJson(request, input));
    ATTENDANT_RETURN_IF_ERROR(SequencesFromJson(request, "inputs", limits, input.sequences));
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    const auto hidden = static_cast<size_t>(output.hidden);
    AppendJsonArray(output.sequences, json, [&json, hidden](const EncodedSequence& sequence) {
      AppendJsonRows(sequence.result.last_hidden_state, hidden, json);
    });
  }
};

// The first sequence against each of the others.
class SimilarityTranslation final : public DoorTranslation {
 public:
  absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) override {
    EncodeInput input;
    input.pooled = true;
    input.normalize = true;
    const std::optional<JsonView> inputs = request.Find("inputs");
    if (!inputs) return absl::InvalidArgumentError("inputs is missing");
    if (inputs->kind() != JsonView::Kind::kObject) {
      return WrongJsonType("inputs", "an object", *inputs);
    }
    std::optional<std::string> source;
    ATTENDANT_RETURN_IF_ERROR(inputs->Read("source_sentence", source));
    if (!source) return absl::InvalidArgumentError("source_sentence is missing");
    input.sequences.emplace_back(*std::move(source));
    ATTENDANT_RETURN_IF_ERROR(TextsFromJson(*inputs, "sentences", limits, input.sequences));
    input.truncation = Truncation::kRight;
    const std::optional<JsonView> parameters = request.Find("parameters");
    if (parameters) {
      if (parameters->kind() != JsonView::Kind::kObject) {
        return WrongJsonType("parameters", "an object", *parameters);
      }
      ATTENDANT_RETURN_IF_ERROR(TeiOptionsFromJson(*parameters, input));
    }
    return input;
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    const std::vector<float>& source = output.sequences[0].result.pooled;
    std::vector<float> similarities;
    for (size_t i = 1; i < output.sequences.size(); ++i) {
      const std::vector<float>& other = output.sequences[i].result.pooled;
      similarities.push_back(CosineOfNormalized(source, other));
    }
    AppendJsonFloats(similarities, json);
  }
};

std::unique_ptr<DoorTranslation> NewEmbedAll() { return std::make_unique<EmbedAllTranslation>(); }

// TEI's word for the last token differs from sentence-transformers'.
std::string PoolingNames(const std::vector<Pooling>& poolings) {
  return absl::StrJoin(poolings, "+", [](std::string* names, Pooling pooling) {
    absl::StrAppend(names, pooling == Pooling::kLast ? "last_token" : PoolingName(pooling));
  });
}

void AppendModelType(const EncoderInfo& model, std::string& json) {
  if (!model.labels.has_value()) {
    absl::StrAppend(&json, "\"embedding\":{\"pooling\":\"", PoolingNames(model.poolings), "\"}");
    return;
  }
  const std::vector<std::string>& labels = *model.labels;
  absl::StrAppend(&json, labels.size() == 1 ? "\"reranker\"" : "\"classifier\"",
                  ":{\"id2label\":{");
  for (size_t i = 0; i < labels.size(); ++i) {
    absl::StrAppend(&json, i > 0 ? "," : "", "\"", i, "\":");
    AppendJsonString(labels[i], json);
  }
  json += "},\"label2id\":{";
  for (size_t i = 0; i < labels.size(); ++i) {
    if (i > 0) json.push_back(',');
    AppendJsonString(labels[i], json);
    absl::StrAppend(&json, ":", i);
  }
  json += "}}";
}

absl::Status Info(const DoorDependencies& dependencies, const HttpExchange& exchange,
                  std::string& json) {
  const ModelRegistry& models = dependencies.encode.requests.models;
  ATTENDANT_ASSIGN_OR_RETURN(const std::string name,
                             ModelFromHeaders(exchange.header, models, AnyEncoder));
  ATTENDANT_ASSIGN_OR_RETURN(const ModelStatus status, models.Describe(name));
  const EncoderInfo& model = *status.info;
  absl::StrAppend(&json, "{\"model_id\":");
  AppendJsonString(name, json);
  absl::StrAppend(&json, ",\"model_sha\":null,\"model_dtype\":\"", DTypeName(model.dtype),
                  "\",\"model_type\":{");
  AppendModelType(model, json);
  absl::StrAppend(&json, "},\"max_concurrent_requests\":", model.max_queued_requests,
                  ",\"max_input_length\":", model.max_text_tokens,
                  ",\"max_batch_tokens\":", model.max_batch_tokens,
                  ",\"max_batch_requests\":", model.max_batch_sequences,
                  ",\"max_client_batch_size\":", dependencies.encode.limits.max_request_sequences,
                  ",\"auto_truncate\":true,\"tokenization_workers\":1,\"version\":\"",
                  dependencies.version, "\",\"sha\":null,\"docker_label\":null}");
  return absl::OkStatus();
}

std::string TeiOptionsProperties() {
  return absl::StrCat(kTeiTruncationProperties, R"(,"prompt_name":{"type":"string"})");
}

std::string EmbedSchema() {
  return TeiInputsSchema(
      absl::StrCat(R"("normalize":{"type":"boolean","default":true},"dimensions":)", kCountSchema));
}

std::string SimilaritySchema() {
  return absl::StrCat(
      R"({"type":"object","required":["inputs"],"properties":{"inputs":{"type":"object",)"
      R"("required":["source_sentence","sentences"],"properties":{)"
      R"("source_sentence":{"type":"string"},"sentences":)",
      kTextsSchema, R"(}},"parameters":{"type":"object","properties":{)", TeiOptionsProperties(),
      "}}}}");
}

constexpr char kVectors[] =
    R"({"type":"array","items":{"type":"array","items":{"type":"number"}}})";
constexpr char kVectorsOfTokens[] = R"({"type":"array","items":{"type":"array",
"items":{"type":"array","items":{"type":"number"}}}})";

}  // namespace

std::unique_ptr<DoorTranslation> NewTeiEmbed() { return std::make_unique<EmbedTranslation>(); }
std::unique_ptr<DoorTranslation> NewTeiSimilarity() {
  return std::make_unique<SimilarityTranslation>();
}

HttpResponse TeiError(const HttpFailure& failure) {
  return JsonFailure(failure, "error",
                     absl::StrCat(",\"error_type\":\"", ErrorTypeOf(failure.code), "\""));
}

absl::Status TeiTruncationFromJson(JsonView request, EncodeInput& input) {
  bool truncate = true;
  ATTENDANT_RETURN_IF_ERROR(request.Read("truncate", truncate));
  std::optional<Truncation> side = Truncation::kRight;
  ATTENDANT_RETURN_IF_ERROR(SideFromJson(request, "truncation_direction", side));
  input.truncation = truncate ? *side : Truncation::kNone;
  return absl::OkStatus();
}

absl::Status TeiOptionsFromJson(JsonView request, EncodeInput& input) {
  ATTENDANT_RETURN_IF_ERROR(TeiTruncationFromJson(request, input));
  return request.Read("prompt_name", input.prompt_name);
}

std::string TeiInputsSchema(absl::string_view more) {
  return absl::StrCat(R"({"type":"object","required":["inputs"],"properties":{"inputs":)",
                      kSequencesSchema, ",", TeiOptionsProperties(), more.empty() ? "" : ",", more,
                      "}}");
}

namespace {

// Whether the server is ready: 200 without a body, or 503.
HttpRoute TeiHealthRoute(const DoorDependencies& dependencies, const char* path) {
  const ModelRegistry& models = dependencies.encode.requests.models;
  return MakeHttpRoute(
      "GET", path, MethodGroup::kOpen, TeiError,
      Small(dependencies, [&models](const HttpExchange&, std::string&) { return models.Ready(); }),
      {"TEI: the server is ready"});
}

}  // namespace

std::vector<HttpRoute> TeiRoutes(const DoorDependencies& dependencies) {
  std::vector<HttpRoute> routes = {
      DoorRoute<FixedTeiRun<NewTeiEmbed>>(
          dependencies, "/embed", Method::kTeiEmbed, HeaderOrOnlyModel(Embeds), TeiError,
          {"TEI: embeddings of texts or token ids", EmbedSchema(), kVectors}),
      DoorRoute<FixedTeiRun<NewEmbedAll>>(
          dependencies, "/embed_all", Method::kTeiEmbedAll, HeaderOrOnlyModel(Embeds), TeiError,
          {"TEI: an embedding of each token", TeiInputsSchema(), kVectorsOfTokens}),
      DoorRoute<FixedTeiRun<NewTeiSimilarity>>(
          dependencies, "/similarity", Method::kTeiSimilarity, HeaderOrOnlyModel(Embeds), TeiError,
          {"TEI: cosine similarities of one sentence to others", SimilaritySchema(),
           R"({"type":"array","items":{"type":"number"}})"}),
      TeiRootRoute(dependencies),
      TeiSparseRoute(dependencies),
      NormalizedEmbeddingsRoute(dependencies, "/embeddings", "TEI: as /v1/embeddings, normalized"),
      TeiHealthRoute(dependencies, "/health"),
      TeiHealthRoute(dependencies, "/ping"),
      MakeHttpRoute("GET", "/info", MethodGroup::kRead, TeiError,
                    Small(dependencies,
                          [&dependencies](const HttpExchange& exchange, std::string& json) {
                            return Info(dependencies, exchange, json);
                          }),
                    {"TEI: the model and the limits", "", R"({"type":"object"})"})};
  for (HttpRoute& route : TeiTokenizeRoutes(dependencies)) routes.push_back(std::move(route));
  for (HttpRoute& route : TeiScoreRoutes(dependencies)) routes.push_back(std::move(route));
  return routes;
}

}  // namespace attendant
