// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/cohere.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/access/id_source.h"
#include "server/http/doors/inputs.h"
#include "server/http/json/json_writer.h"
#include "server/requests/number_format.h"

namespace attendant {
namespace {

// The signs of eight values in a byte, the first in its highest bit; 1 is above 0.
std::vector<int32_t> PackSigns(const std::vector<float>& values, int32_t offset) {
  std::vector<int32_t> bytes((values.size() + 7) / 8, offset);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0) bytes[i / 8] += 1 << (7 - i % 8);
  }
  return bytes;
}

void AppendBase64(const std::vector<float>& values, std::string& json) {
  std::string bytes;
  AppendValues(values, NumberFormat::kF32, bytes);
  absl::StrAppend(&json, "\"", absl::Base64Escape(bytes), "\"");
}

// How embeddings are written.
struct EmbeddingType {
  absl::string_view name;
  void (*append)(const std::vector<float>& values, std::string& json);
};

constexpr EmbeddingType kTypes[] = {
    {"float",
     [](const std::vector<float>& values, std::string& json) { AppendJsonFloats(values, json); }},
    {"base64", AppendBase64},
    {"binary", [](const std::vector<float>& values,
                  std::string& json) { AppendJsonIntegers(PackSigns(values, -128), json); }},
    {"ubinary", [](const std::vector<float>& values, std::string& json) {
       AppendJsonIntegers(PackSigns(values, 0), json);
     }}};

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
  return absl::InvalidArgumentError(
      absl::StrCat("embedding_types must be float, base64, binary or ubinary, not ", Quote(name)));
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

absl::Status TruncationFromJson(JsonView request, Truncation& truncation) {
  std::string word = "END";
  ATTENDANT_RETURN_IF_ERROR(request.Read("truncate", word));
  truncation = word == "END" ? Truncation::kRight : Truncation::kNone;
  if (word == "END" || word == "NONE") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("truncate must be END or NONE, not ", Quote(word)));
}

absl::Status CheckInputType(JsonView request) {
  constexpr absl::string_view kKnown[] = {"search_document", "search_query", "classification",
                                          "clustering"};
  std::optional<std::string> type;
  ATTENDANT_RETURN_IF_ERROR(request.Read("input_type", type));
  if (!type || std::find(std::begin(kKnown), std::end(kKnown), *type) != std::end(kKnown)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("input_type must be search_document, search_query, classification or "
                   "clustering, not ",
                   Quote(*type)));
}

std::string NewId() {
  static IdSource& ids = *new IdSource(std::random_device{}());
  return absl::StrCat(absl::Hex(ids.Next(), absl::kZeroPad16));
}

class CohereRun final : public DoorRun {
 public:
  using DoorRun::DoorRun;

 private:
  absl::StatusOr<EncodeInput> FromJson(JsonView request) override {
    EncodeInput input;
    input.pooled = true;
    ATTENDANT_RETURN_IF_ERROR(TextsFromJson(request, "texts", limits(), input.sequences));
    ATTENDANT_RETURN_IF_ERROR(TypesFromJson(request, types_));
    ATTENDANT_RETURN_IF_ERROR(TruncationFromJson(request, input.truncation));
    ATTENDANT_RETURN_IF_ERROR(CheckInputType(request));
    ATTENDANT_RETURN_IF_ERROR(DimensionsFromJson(request, "output_dimension", input.dims));
    return input;
  }

  // Each value is written once for each type.
  int64_t TextBytes(const EncodeOutput& output) const override {
    return DoorRun::TextBytes(output) * static_cast<int64_t>(types_.size());
  }

  void ToJson(EncodeOutput& output, std::string& json) override {
    json = "{\"id\":";
    AppendJsonString(AnswerId(call()), json);
    json += ",\"embeddings\":{";
    for (const EmbeddingType* type : types_) AppendType(*type, output, json);
    int64_t tokens = 0;
    for (const EncodedSequence& sequence : output.sequences) tokens += sequence.len();
    absl::StrAppend(&json,
                    "},\"meta\":{\"api_version\":{\"version\":\"2\"},\"billed_units\":{"
                    "\"input_tokens\":",
                    tokens, "}},\"response_type\":\"embeddings_by_type\"}");
  }

  static void AppendType(const EmbeddingType& type, const EncodeOutput& output, std::string& json) {
    absl::StrAppend(&json, json.back() == '{' ? "" : ",", "\"", type.name, "\":[");
    for (const EncodedSequence& sequence : output.sequences) {
      if (&sequence != &output.sequences.front()) json.push_back(',');
      type.append(sequence.result.pooled, json);
    }
    json.push_back(']');
  }

  std::vector<const EmbeddingType*> types_;
};

constexpr char kRequestSchema[] = R"({"type":"object","required":["model","texts"],"properties":{
"model":{"type":"string"},"texts":{"type":"array","items":{"type":"string"}},
"input_type":{"enum":["search_document","search_query","classification","clustering"]},
"embedding_types":{"type":"array","items":{"enum":["float","base64","binary","ubinary"]}},
"truncate":{"enum":["END","NONE"],"default":"END"},
"output_dimension":{"type":"integer","minimum":1}}})";

constexpr char kResponseSchema[] = R"({"type":"object","properties":{"id":{"type":"string"},
"embeddings":{"type":"object","properties":{
"float":{"type":"array","items":{"type":"array","items":{"type":"number"}}},
"base64":{"type":"array","items":{"type":"string"}},
"binary":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
"ubinary":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}},
"meta":{"type":"object"},"response_type":{"const":"embeddings_by_type"}}})";

}  // namespace

HttpResponse CohereError(const HttpFailure& failure) {
  HttpResponse response{.code = failure.code, .content_type = "application/json"};
  response.body = "{\"message\":";
  AppendJsonString(failure.status.message(), response.body);
  response.body += "}";
  return response;
}

std::string AnswerId(const RequestCall& call) {
  const std::string& id = call.state->call().request_id;
  return id.empty() ? NewId() : id;
}

std::vector<HttpRoute> CohereRoutes(const DoorDependencies& dependencies) {
  return {MakeHttpRoute("POST", "/v2/embed", MethodGroup::kInfer, CohereError,
                        [&dependencies](std::unique_ptr<HttpExchange> exchange) {
                          StartDoorRun<CohereRun>(dependencies, Method::kCohereEmbed,
                                                  std::move(exchange));
                        },
                        {"Cohere: embeddings of texts", kRequestSchema, kResponseSchema})};
}

}  // namespace attendant
