// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/batching/request.h"
#include "server/http/doors/door_call.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/tei_parts.h"
#include "server/http/json/json_writer.h"
#include "server/text/tokenizer.h"

namespace attendant {
namespace {

// What a token's fields take as JSON, without its text.
constexpr int64_t kTokenBytes = 80;
constexpr int64_t kEscapedByte = 6;  // "\u001f"

struct Tokens {
  std::vector<int32_t> ids;
  size_t first_own = 0, end_own = 0;  // those between are of the text, the others special
};

// Texts to tokens. It computes nothing: its work for the batcher has no sequences.
class TokenizeRun final : public RequestRun {
 public:
  TokenizeRun(const EncodeDependencies& dependencies, RequestCall call, int /*priority*/,
              HttpResponse& response)
      : RequestRun(dependencies.requests, std::move(call)),
        limits_(dependencies.limits),
        response_(response) {}

 private:
  absl::StatusOr<std::shared_ptr<ServableModel>> Decode() override {
    ATTENDANT_ASSIGN_OR_RETURN(model_, dependencies().models.Find(call().model));
    const JsonView request = static_cast<const JsonMessage&>(message()).root();
    if (request.Find("prompt_name")) {
      return absl::InvalidArgumentError("prompt_name is not supported: put it into the text");
    }
    ATTENDANT_RETURN_IF_ERROR(request.Read("add_special_tokens", add_special_tokens_));
    ATTENDANT_RETURN_IF_ERROR(SequencesFromJson(request, "inputs", limits_, texts_));
    ATTENDANT_RETURN_IF_ERROR(AcquireRequest(kSequenceBytes * static_cast<int64_t>(texts_.size())));
    return model_;
  }

  absl::StatusOr<PendingRequest> Prepare() override {
    if (model_->tokenizer == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", model_->name, "' has no tokenizer"));
    }
    int64_t bytes = 0;
    for (size_t i = 0; i < texts_.size(); ++i) {
      const auto* text = std::get_if<std::string>(&texts_[i]);
      if (text == nullptr) {
        return absl::InvalidArgumentError("inputs must be a string or an array of strings");
      }
      ATTENDANT_ASSIGN_OR_RETURN(Tokens tokens, Tokenize(*text));
      bytes += JsonBytes(tokens);
      if (bytes > limits_.max_response_bytes) {
        return absl::InvalidArgumentError(absl::StrCat("the tokens up to text ", i, " take ", bytes,
                                                       " bytes, the limit is ",
                                                       limits_.max_response_bytes));
      }
      tokens_.push_back(std::move(tokens));
      texts_[i] = std::string();
    }
    ATTENDANT_RETURN_IF_ERROR(AcquireResponse(bytes + kAnswerBytes));
    PendingRequest pending;
    pending.work.emplace<EncodeWork>();
    return pending;
  }

  absl::StatusOr<Tokens> Tokenize(const std::string& text) const {
    ATTENDANT_ASSIGN_OR_RETURN(
        TokenizedText tokenized,
        model_->tokenizer->Tokenize(
            text, {.max_tokens = std::numeric_limits<int32_t>::max(), .truncate = false}));
    const Tokenizer::SpecialTokens special = model_->tokenizer->special_tokens();
    Tokens tokens{.ids = std::move(tokenized.token_ids)};
    tokens.first_own = special.before;
    tokens.end_own = tokens.ids.size() - special.after;
    return tokens;
  }

  int64_t JsonBytes(const Tokens& tokens) const {
    int64_t bytes = kSequenceBytes;
    for (const int32_t id : tokens.ids) {
      bytes += kTokenBytes +
               kEscapedByte * static_cast<int64_t>(model_->tokenizer->TokenString(id).size());
    }
    return bytes;
  }

  void Answer(RequestResult /*empty*/) override {
    response_.content_type = "application/json";
    response_.compressible = true;
    std::string& json = response_.body;
    json.push_back('[');
    for (const Tokens& tokens : tokens_) {
      if (&tokens != &tokens_.front()) json.push_back(',');
      AppendTokens(tokens, json);
    }
    json.push_back(']');
  }

  void AppendTokens(const Tokens& tokens, std::string& json) const {
    const size_t begin = add_special_tokens_ ? 0 : tokens.first_own;
    const size_t end = add_special_tokens_ ? tokens.ids.size() : tokens.end_own;
    json.push_back('[');
    for (size_t i = begin; i < end; ++i) {
      const bool special = i < tokens.first_own || i >= tokens.end_own;
      absl::StrAppend(&json, i == begin ? "" : ",", "{\"id\":", tokens.ids[i], ",\"text\":");
      AppendJsonString(model_->tokenizer->TokenString(tokens.ids[i]), json);
      absl::StrAppend(&json, ",\"special\":", special ? "true" : "false",
                      ",\"start\":null,\"stop\":null}");
    }
    json.push_back(']');
  }

  int64_t AnswerBytes() const override { return static_cast<int64_t>(response_.body.size()); }
  // None is computed.
  RequestTokens CountTokens(ModelMetrics& /*metrics*/) const override {
    return {.sequences = static_cast<int64_t>(tokens_.size())};
  }

  const EncodeLimits& limits_;
  HttpResponse& response_;
  std::shared_ptr<EncoderModel> model_;
  Sequences texts_;
  bool add_special_tokens_ = true;
  std::vector<Tokens> tokens_;
};

}  // namespace

HttpRoute TeiTokenizeRoute(const DoorDependencies& dependencies) {
  return MakeHttpRoute(
      "POST", "/tokenize", MethodGroup::kInfer, TeiError,
      [&dependencies](std::unique_ptr<HttpExchange> exchange) {
        StartUnnamedRun<TokenizeRun>(dependencies, Method::kTeiTokenize, std::move(exchange));
      },
      {"TEI: the tokens of texts",
       R"({"type":"object","required":["inputs"],"properties":{"inputs":{"oneOf":[
{"type":"string"},{"type":"array","items":{"type":"string"}}]},
"add_special_tokens":{"type":"boolean","default":true}}})",
       R"({"type":"array","items":{"type":"array","items":{"type":"object","properties":{
"id":{"type":"integer"},"text":{"type":"string"},"special":{"type":"boolean"},
"start":{"type":["integer","null"]},"stop":{"type":["integer","null"]}}}}})"});
}

}  // namespace attendant
