// SPDX-License-Identifier: Apache-2.0
#include "server/requests/text_runs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/batching/request.h"
#include "server/models/sentence/prompts.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/requests/only_model.h"

namespace attendant {
namespace {

// A decoder makes about so many bytes of a token, beside its own: a space or a replacement.
constexpr int64_t kDecodedBytes = 16;

}  // namespace

absl::StatusOr<std::shared_ptr<ServableModel>> TokenizerRun::Decode() {
  ATTENDANT_ASSIGN_OR_RETURN(model_, FindUnnamedModel(dependencies(), call()));
  if (model_->tokenizer == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("model '", model_->name, "' has no tokenizer"));
  }
  ATTENDANT_RETURN_IF_ERROR(FromMessage(inputs_));
  ATTENDANT_RETURN_IF_ERROR(AcquireRequest(kSequenceBytes * inputs_));
  return model_;
}

absl::StatusOr<WorkRequest> TokenizerRun::Prepare() {
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t bytes, Compute());
  ATTENDANT_RETURN_IF_ERROR(AcquireResponse(bytes + kAnswerBytes));
  WorkRequest request;
  request.work.emplace<EncodeWork>();
  return request;
}

absl::Status TokenizerRun::CheckAnswer(size_t index, int64_t bytes) const {
  if (bytes <= limits_.max_response_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the answer up to input ", index, " takes ", bytes,
                                                 " bytes, the limit is ",
                                                 limits_.max_response_bytes));
}

absl::Status TokenizeRun::FromMessage(int64_t& inputs) {
  ATTENDANT_ASSIGN_OR_RETURN(input_, InputFromMessage());
  inputs = static_cast<int64_t>(input_.texts.size());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TokenizeRun::Compute() {
  ATTENDANT_ASSIGN_OR_RETURN(const Prompt* prompt, model().prompts.Find(input_.prompt_name));
  const absl::string_view before = prompt == nullptr ? absl::string_view() : prompt->text;
  int64_t bytes = 0;
  for (size_t i = 0; i < input_.texts.size(); ++i) {
    bytes += kSequenceBytes;
    ATTENDANT_RETURN_IF_ERROR(CheckAnswer(i, bytes));
    ATTENDANT_ASSIGN_OR_RETURN(lists_.emplace_back(), Tokenize(i, before, bytes));
  }
  return bytes;
}

// A text may have as many tokens as bytes. More than the answer holds are never kept, and their
// strings are made one by one.
absl::StatusOr<std::vector<TextToken>> TokenizeRun::Tokenize(size_t index, absl::string_view prompt,
                                                             int64_t& bytes) {
  const std::string text = std::exchange(input_.texts[index], {});
  const Tokenizer::SpecialTokens special = tokenizer().special_tokens();
  const int64_t most = (limits().max_response_bytes - bytes) / TokenBytes({});
  ATTENDANT_ASSIGN_OR_RETURN(
      const TokenizedText tokenized,
      tokenizer().Tokenize(
          text, {.max_tokens = most + static_cast<int64_t>(special.before + special.after),
                 .truncate = false,
                 .prompt = prompt,
                 .offsets = OffsetUnit::kBytes}));
  const size_t first_own = special.before;
  const size_t end_own = tokenized.token_ids.size() - special.after;
  const std::string whole = absl::StrCat(prompt, text);
  std::vector<TextToken> tokens;
  tokens.reserve(tokenized.token_ids.size());
  for (size_t i = 0; i < tokenized.token_ids.size(); ++i) {
    const bool own = i >= first_own && i < end_own;
    if (!own && !input_.add_special_tokens) continue;
    const int32_t id = tokenized.token_ids[i];
    TextToken& token = tokens.emplace_back(TextToken{.id = id, .text = {}, .special = !own});
    if (own) token.offset = tokenized.offsets[i];
    token.text = own ? TextAt(whole, *token.offset) : std::string(tokenizer().TokenString(id));
    bytes += TokenBytes(token);
    ATTENDANT_RETURN_IF_ERROR(CheckAnswer(index, bytes));
  }
  return tokens;
}

absl::Status DetokenizeRun::FromMessage(int64_t& inputs) {
  ATTENDANT_ASSIGN_OR_RETURN(input_, InputFromMessage());
  inputs = static_cast<int64_t>(input_.ids.size());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DetokenizeRun::Compute() {
  int64_t bytes = 0;
  for (size_t i = 0; i < input_.ids.size(); ++i) {
    bytes += kSequenceBytes;
    for (const int32_t id : input_.ids[i]) {
      const auto token = static_cast<int64_t>(tokenizer().DecodedString(id).size());
      bytes += (token + kDecodedBytes) * bytes_of_byte();
    }
    ATTENDANT_RETURN_IF_ERROR(CheckAnswer(i, bytes));
  }
  int64_t decoded_bytes = 0;
  for (size_t i = 0; i < input_.ids.size(); ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(std::string text,
                               tokenizer().Decode(input_.ids[i], input_.skip_special_tokens));
    decoded_bytes += kSequenceBytes + static_cast<int64_t>(text.size()) * bytes_of_byte();
    ATTENDANT_RETURN_IF_ERROR(CheckAnswer(i, decoded_bytes));
    texts_.push_back(std::move(text));
  }
  return std::max(bytes, decoded_bytes);
}

}  // namespace attendant
