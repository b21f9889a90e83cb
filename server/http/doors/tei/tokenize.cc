// SPDX-License-Identifier: Apache-2.0
// /tokenize and /decode of text-embeddings-inference.
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/door_call.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/tei/parts.h"
#include "server/http/json/json_writer.h"
#include "server/requests/only_model.h"
#include "server/requests/text_runs.h"

namespace attendant {
namespace {

// What a token's fields take as JSON, without its text.
constexpr int64_t kTokenBytes = 96;
constexpr int64_t kEscapedByte = 6;  // "\u001f"

JsonView RootOf(const RequestMessage& message) { return MessageAs<JsonMessage>(message).root(); }

class JsonTokenizeRun final : public TokenizeRun {
 public:
  JsonTokenizeRun(const EncodeDependencies& dependencies, RequestCall call, int /*priority*/,
                  HttpResponse& response)
      : TokenizeRun(dependencies, std::move(call)), response_(response) {}

 private:
  absl::StatusOr<TokenizeInput> InputFromMessage() override {
    const JsonView request = RootOf(message());
    TokenizeInput input;
    ATTENDANT_RETURN_IF_ERROR(request.Read("prompt_name", input.prompt_name));
    ATTENDANT_RETURN_IF_ERROR(request.Read("add_special_tokens", input.add_special_tokens));
    Sequences sequences;
    ATTENDANT_RETURN_IF_ERROR(SequencesFromJson(request, "inputs", limits(), sequences));
    for (SequenceContent& sequence : sequences) {
      auto* text = std::get_if<std::string>(&sequence);
      if (text == nullptr) {
        return absl::InvalidArgumentError("inputs must be a string or an array of strings");
      }
      input.texts.push_back(std::move(*text));
    }
    return input;
  }

  int64_t TokenBytes(const TextToken& token) const override {
    return kTokenBytes + kEscapedByte * static_cast<int64_t>(token.text.size());
  }

  void ToMessage() override {
    std::string& json = StartJson(response_);
    AppendJsonArray(lists(), json, [&json](const std::vector<TextToken>& tokens) {
      AppendJsonArray(tokens, json, [&json](const TextToken& token) {
        absl::StrAppend(&json, "{\"id\":", token.id, ",\"text\":");
        AppendJsonString(token.text, json);
        absl::StrAppend(&json, ",\"special\":", token.special ? "true" : "false");
        AppendOffset(token, json);
      });
    });
  }

  // And the end of the token's object.
  static void AppendOffset(const TextToken& token, std::string& json) {
    if (token.offset.has_value()) {
      absl::StrAppend(&json, ",\"start\":", token.offset->begin, ",\"stop\":", token.offset->end,
                      "}");
    } else {
      json += ",\"start\":null,\"stop\":null}";
    }
  }

  HttpResponse& response_;
};

class JsonDetokenizeRun final : public DetokenizeRun {
 public:
  JsonDetokenizeRun(const EncodeDependencies& dependencies, RequestCall call, int /*priority*/,
                    HttpResponse& response)
      : DetokenizeRun(dependencies, std::move(call)), response_(response) {}

 private:
  absl::StatusOr<DetokenizeInput> InputFromMessage() override {
    const JsonView request = RootOf(message());
    DetokenizeInput input;
    ATTENDANT_RETURN_IF_ERROR(request.Read("skip_special_tokens", input.skip_special_tokens));
    Sequences sequences;
    ATTENDANT_RETURN_IF_ERROR(SequencesFromJson(request, "ids", limits(), sequences));
    for (const SequenceContent& sequence : sequences) {
      const auto* ids = std::get_if<IdsInput>(&sequence);
      if (ids == nullptr) {
        return absl::InvalidArgumentError("ids must be an array of token ids, or of such arrays");
      }
      std::vector<int32_t>& list = input.ids.emplace_back();
      for (const int64_t id : ids->token_ids) {
        if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
          return absl::InvalidArgumentError(absl::StrCat("ids has ", id, ", which is no token id"));
        }
        list.push_back(static_cast<int32_t>(id));
      }
    }
    return input;
  }

  int64_t bytes_of_byte() const override { return kEscapedByte; }

  void ToMessage() override {
    std::string& json = StartJson(response_);
    AppendJsonArray(texts(), json,
                    [&json](const std::string& text) { AppendJsonString(text, json); });
  }

  HttpResponse& response_;
};

}  // namespace

std::vector<HttpRoute> TeiTokenizeRoutes(const DoorDependencies& dependencies) {
  return {
      DoorRoute<JsonTokenizeRun>(
          dependencies, "/tokenize", Method::kTeiTokenize, HeaderOrOnlyModel(TakesText), TeiError,
          {"TEI: the tokens of texts",
           absl::StrCat(
               R"({"type":"object","required":["inputs"],"properties":{"inputs":{"oneOf":[)"
               R"({"type":"string"},)",
               kTextsSchema,
               R"(]},"add_special_tokens":{"type":"boolean","default":true},)"
               R"("prompt_name":{"type":"string"}}})"),
           R"({"type":"array","items":{"type":"array","items":{"type":"object","properties":{
"id":{"type":"integer"},"text":{"type":"string"},"special":{"type":"boolean"},
"start":{"type":["integer","null"]},"stop":{"type":["integer","null"]}}}}})"}),
      DoorRoute<JsonDetokenizeRun>(
          dependencies, "/decode", Method::kTeiTokenize, HeaderOrOnlyModel(TakesText), TeiError,
          {"TEI: the texts of token ids",
           R"({"type":"object","required":["ids"],"properties":{"ids":{"oneOf":[
{"type":"array","items":{"type":"integer"}},
{"type":"array","items":{"type":"array","items":{"type":"integer"}}}]},
"skip_special_tokens":{"type":"boolean","default":true}}})",
           R"({"type":"array","items":{"type":"string"}})"})};
}

}  // namespace attendant
