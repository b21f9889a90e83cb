// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/cohere/cohere.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/inputs.h"
#include "server/http/json/json_writer.h"
#include "server/requests/formats/embedding_format.h"
#include "server/tracing/id_source.h"

namespace attendant {
namespace {

// PackSigns of the values, less `less`.
void AppendSigns(const std::vector<float>& values, int32_t less, std::string& json) {
  const std::vector<uint8_t> bytes = PackSigns(values);
  std::vector<int32_t> numbers(bytes.begin(), bytes.end());
  for (int32_t& number : numbers) number -= less;
  AppendJsonIntegers(numbers, json);
}

void AppendInt8(const std::vector<float>& values, std::string& json) {
  const Int8Embedding embedding = QuantizeInt8(values);
  const std::vector<int32_t> numbers(embedding.values.begin(), embedding.values.end());
  AppendJsonIntegers(numbers, json);
}

// How embeddings are written.
struct EmbeddingType {
  absl::string_view name;
  void (*append)(const std::vector<float>& values, std::string& json);
};

constexpr EmbeddingType kTypes[] = {
    {"float",
     [](const std::vector<float>& values, std::string& json) { AppendJsonFloats(values, json); }},
    {"base64", AppendJsonBase64},
    {"int8", AppendInt8},
    {"binary",
     [](const std::vector<float>& values, std::string& json) { AppendSigns(values, 128, json); }},
    {"ubinary",
     [](const std::vector<float>& values, std::string& json) { AppendSigns(values, 0, json); }}};

absl::Status AddType(JsonView value, std::vector<const EmbeddingType*>& types) {
  const absl::string_view name =
      value.kind() == JsonView::Kind::kString ? value.String() : absl::string_view();
  for (const EmbeddingType& type : kTypes) {
    if (type.name != name) continue;
    if (std::find(types.begin(), types.end(), &type) != types.end()) {
      return absl::InvalidArgumentError(absl::StrCat("embedding_types has ", name, " twice"));
    }
    types.push_back(&type);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "embedding_types must be float, base64, int8, binary or ubinary, not ", Quote(name)));
}

absl::Status TypesFromJson(JsonView request, std::vector<const EmbeddingType*>& types) {
  const std::optional<JsonView> found = request.Find("embedding_types");
  if (!found) {
    types = {&kTypes[0]};
    return absl::OkStatus();
  }
  if (found->kind() != JsonView::Kind::kArray || found->size() == 0) {
    return WrongJsonType("embedding_types", "an array of at least one string", *found);
  }
  return found->ForEach([&types](JsonView value) { return AddType(value, types); });
}

// One of `inputs`: {"content":[{"type":"text","text":".."}]}
absl::Status TextOfInput(JsonView input, Sequences& sequences) {
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("inputs[", sequences.size(),
                   "].content must be an array of one object of type text, with its text"));
  const std::optional<JsonView> content = input.Find("content");
  if (!content || content->kind() != JsonView::Kind::kArray || content->size() != 1) return wrong;
  return content->ForEach([&](JsonView part) {
    const std::optional<JsonView> type = part.Find("type"), text = part.Find("text");
    const bool is_text = type && type->kind() == JsonView::Kind::kString &&
                         type->String() == "text" && text &&
                         text->kind() == JsonView::Kind::kString;
    if (!is_text) return wrong;
    sequences.emplace_back(std::string(text->String()));
    return absl::OkStatus();
  });
}

// Of `inputs`.
constexpr char kInputsSchema[] = R"({"type":"array","items":{"type":"object",
"required":["content"],"properties":{"content":{"type":"array","minItems":1,"maxItems":1,
"items":{"type":"object","required":["type","text"],"properties":{"type":{"const":"text"},
"text":{"type":"string"}}}}}}})";

// `texts`, or instead `inputs`, where Cohere takes images beside texts.
absl::Status CohereTextsFromJson(JsonView request, const EncodeLimits& limits,
                                 Sequences& sequences) {
  const std::optional<JsonView> images = request.Find("images");
  if (images) return WrongJsonType("images", "absent", *images);
  if (!request.Find("inputs")) return TextsFromJson(request, "texts", limits, sequences);
  ATTENDANT_ASSIGN_OR_RETURN(const JsonView inputs,
                             ListFromJson(request, "inputs", "an array of objects", limits));
  if (request.Find("texts")) {
    return absl::InvalidArgumentError("texts and inputs exclude each other");
  }
  return inputs.ForEach([&](JsonView input) { return TextOfInput(input, sequences); });
}

std::string NewId() {
  static IdSource& ids = *new IdSource(std::random_device{}());
  return absl::StrCat(absl::Hex(ids.Next(), absl::kZeroPad16));
}

template <int kVersion>
class CohereRun final : public DoorRun {
 public:
  using DoorRun::DoorRun;

 private:
  absl::StatusOr<EncodeInput> FromJson(JsonView request) override {
    EncodeInput input;
    input.pooled = true;
    ATTENDANT_RETURN_IF_ERROR(CohereTextsFromJson(request, limits(), input.sequences));
    ATTENDANT_RETURN_IF_ERROR(TypesFromJson(request, types_));
    by_type_ = kVersion > 1 || request.Find("embedding_types").has_value();
    ATTENDANT_RETURN_IF_ERROR(
        TruncationWordFromJson(request, Truncation::kRight, input.truncation));
    ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, "max_tokens", input.max_tokens));
    ATTENDANT_RETURN_IF_ERROR(
        InputTypeFromJson(request, model().prompts, UnknownInputType::kRefused, input));
    ATTENDANT_RETURN_IF_ERROR(CountFromJson(request, "output_dimension", input.dims));
    return input;
  }

  // Each value is written once for each type.
  int64_t TextBytes(const EncodeOutput& output) const override {
    return DoorRun::TextBytes(output) * static_cast<int64_t>(types_.size());
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    json = "{\"id\":";
    AppendJsonString(AnswerId(call()), json);
    json += ",\"embeddings\":";
    if (by_type_) {
      json += "{";
      for (const EmbeddingType* type : types_) {
        absl::StrAppend(&json, json.back() == '{' ? "" : ",", "\"", type->name, "\":");
        AppendEmbeddings(*type, output, json);
      }
      json += "}";
    } else {
      AppendEmbeddings(*types_[0], output, json);
    }
    absl::StrAppend(&json, ",\"meta\":{\"api_version\":{\"version\":\"", kVersion,
                    "\"},\"billed_units\":{\"input_tokens\":", output.tokens(),
                    "}},\"response_type\":\"embeddings_", by_type_ ? "by_type" : "floats", "\"}");
  }

  static void AppendEmbeddings(const EmbeddingType& type, const EncodeOutput& output,
                               std::string& json) {
    AppendJsonArray(output.sequences, json, [&](const EncodedSequence& sequence) {
      type.append(sequence.result.pooled, json);
    });
  }

  std::vector<const EmbeddingType*> types_;
  bool by_type_ = true;  // otherwise the floats alone, as version 1 answers without types
};

std::string CohereSchema() {
  return absl::StrCat(
      R"({"type":"object","required":["model"],"properties":{"model":{"type":"string"},)"
      R"("texts":)",
      kTextsSchema, R"(,"inputs":)", kInputsSchema, R"(,"max_tokens":)", kCountSchema,
      R"(,"output_dimension":)", kCountSchema, R"(,"input_type":)", kInputTypeSchema,
      R"(,"embedding_types":{"type":"array","items":)"
      R"({"enum":["float","base64","int8","binary","ubinary"]}},)"
      R"("truncate":{"enum":["START","END","NONE"],"default":"END"}}})");
}

constexpr char kFloats[] = R"({"type":"array","items":{"type":"array","items":{"type":"number"}}})";
constexpr char kByType[] = R"({"type":"object","properties":{
"float":{"type":"array","items":{"type":"array","items":{"type":"number"}}},
"base64":{"type":"array","items":{"type":"string"}},
"int8":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
"binary":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
"ubinary":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}})";

std::string CohereResponse(int version) {
  return absl::StrCat(
      R"({"type":"object","properties":{"id":{"type":"string"},"embeddings":)",
      version > 1 ? kByType : absl::StrCat("{\"oneOf\":[", kFloats, ",", kByType, "]}"),
      R"(,"meta":{"type":"object"},"response_type":{"enum":[)",
      version > 1 ? "" : "\"embeddings_floats\",", R"("embeddings_by_type"]}}})");
}

template <int kVersion>
HttpRoute CohereRoute(const DoorDependencies& dependencies) {
  return DoorRoute<CohereRun<kVersion>>(
      dependencies, absl::StrCat("/v", kVersion, "/embed"), Method::kCohereEmbed, FieldModel(),
      CohereError, {"Cohere: embeddings of texts", CohereSchema(), CohereResponse(kVersion)});
}

}  // namespace

HttpResponse CohereError(const HttpFailure& failure) { return JsonFailure(failure, "message"); }

std::string AnswerId(const RequestCall& call) {
  const std::string& id = call.state->call().request_id;
  return id.empty() ? NewId() : id;
}

std::vector<HttpRoute> CohereRoutes(const DoorDependencies& dependencies) {
  return {CohereRoute<1>(dependencies), CohereRoute<2>(dependencies)};
}

}  // namespace attendant
