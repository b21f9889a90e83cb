// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/requests/encode_run.h"
#include "server/requests/request_run.h"
#include "server/text/tokenizer.h"

// Requests that a model's tokenizer answers alone: texts to tokens, and back. They take the way of
// every request, without work for the batcher.
namespace attendant {

class TokenizerRun : public RequestRun {
 protected:
  TokenizerRun(const EncodeDependencies& dependencies, RequestCall call)
      : RequestRun(dependencies.requests, std::move(call)), limits_(dependencies.limits) {}

  // Reads the request message. `inputs` counts what it has of them.
  virtual absl::Status FromMessage(int64_t& inputs) = 0;
  // Makes the answer and returns its bytes in the message, at most. INVALID_ARGUMENT above
  // EncodeLimits::max_response_bytes.
  virtual absl::StatusOr<int64_t> Compute() = 0;
  virtual void ToMessage() = 0;

  const EncodeLimits& limits() const { return limits_; }
  const Tokenizer& tokenizer() const { return *model_->tokenizer; }
  const EncoderModel& model() const { return *model_; }
  // OK, or INVALID_ARGUMENT: what the answer takes up to input `index` is too much.
  absl::Status CheckAnswer(size_t index, int64_t bytes) const;

 private:
  absl::StatusOr<std::shared_ptr<ServableModel>> Decode() final;
  absl::StatusOr<WorkRequest> Prepare() final;
  void Answer(Work /*empty*/) final { ToMessage(); }
  // None is computed.
  RequestTokens CountTokens(ModelMetrics& /*metrics*/) const final {
    return {.sequences = inputs_};
  }

  const EncodeLimits& limits_;
  std::shared_ptr<EncoderModel> model_;
  int64_t inputs_ = 0;
};

struct TokenizeInput {
  std::vector<std::string> texts;
  std::optional<std::string> prompt_name{};  // as EncodeInput's
  bool add_special_tokens = true;
};

// A token of a text.
struct TextToken {
  int32_t id = 0;
  std::string text;      // of prompt and text, well-formed; the vocabulary's of a special token
  bool special = false;  // of the template around the text
  // Bytes of prompt and text. None: of a special token.
  std::optional<TokenOffset> offset{};
};

// Derived classes give InputFromMessage, and ToMessage with lists().
class TokenizeRun : public TokenizerRun {
 protected:
  using TokenizerRun::TokenizerRun;

  virtual absl::StatusOr<TokenizeInput> InputFromMessage() = 0;
  // The bytes of a token in the message: more than none, and the least of one without text.
  virtual int64_t TokenBytes(const TextToken& token) const = 0;

  // Of each text, as far as they were asked for.
  const std::vector<std::vector<TextToken>>& lists() const { return lists_; }

 private:
  absl::Status FromMessage(int64_t& inputs) final;
  absl::StatusOr<int64_t> Compute() final;
  // Of the text at `index`, whose tokens it counts in `bytes`.
  absl::StatusOr<std::vector<TextToken>> Tokenize(size_t index, absl::string_view prompt,
                                                  int64_t& bytes);

  TokenizeInput input_;
  std::vector<std::vector<TextToken>> lists_;
};

struct DetokenizeInput {
  std::vector<std::vector<int32_t>> ids;
  bool skip_special_tokens = true;
};

// Ids to texts. Derived classes give InputFromMessage, and ToMessage with texts().
class DetokenizeRun : public TokenizerRun {
 protected:
  using TokenizerRun::TokenizerRun;

  virtual absl::StatusOr<DetokenizeInput> InputFromMessage() = 0;
  // The bytes of a byte of text in the message, at most.
  virtual int64_t bytes_of_byte() const = 0;

  const std::vector<std::string>& texts() const { return texts_; }

 private:
  absl::Status FromMessage(int64_t& inputs) final;
  absl::StatusOr<int64_t> Compute() final;

  DetokenizeInput input_;
  std::vector<std::string> texts_;
};

}  // namespace attendant
