// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/tei/tokenize.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/protocols/typed_message.h"

namespace attendant::tei {
namespace {

// A SimpleToken in memory, without its text.
constexpr int64_t kTokenBytes = 72;

}  // namespace

absl::StatusOr<TokenizeInput> TokensRun::InputFromMessage() {
  const auto& request = Parsed<Request>(message());
  if (request.inputs().empty()) return absl::InvalidArgumentError("inputs is empty");
  TokenizeInput input{.texts = {request.inputs()},
                      .add_special_tokens = request.add_special_tokens()};
  if (request.has_prompt_name()) input.prompt_name = request.prompt_name();
  return input;
}

int64_t TokensRun::TokenBytes(const TextToken& token) const {
  return kTokenBytes + static_cast<int64_t>(token.text.size());
}

void TokensRun::ToMessage() {
  for (const TextToken& token : lists()[0]) {
    ::tei::v1::SimpleToken& simple = *response_.add_tokens();
    simple.set_id(static_cast<uint32_t>(token.id));
    simple.set_text(token.text);
    simple.set_special(token.special);
    if (!token.offset.has_value()) continue;
    simple.set_start(token.offset->begin);
    simple.set_stop(token.offset->end);
  }
}

absl::StatusOr<DetokenizeInput> DecodeRun::InputFromMessage() {
  const auto& request = Parsed<Request>(message());
  if (request.ids().empty()) return absl::InvalidArgumentError("ids is empty");
  DetokenizeInput input{.ids = {{}}, .skip_special_tokens = request.skip_special_tokens()};
  for (const uint32_t id : request.ids()) {
    if (id > static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) {
      return absl::InvalidArgumentError(absl::StrCat("ids has ", id, ", which is no token id"));
    }
    input.ids[0].push_back(static_cast<int32_t>(id));
  }
  return input;
}

TokenizeService::TokenizeService(const Dependencies& dependencies)
    : RawService(dependencies.encode.requests.gate, dependencies.encode.requests.budgets),
      tokenize_(dependencies, Method::kTeiTokenize, TakesText),
      decode_(dependencies, Method::kTeiTokenize, TakesText) {
  ServeRequests("Tokenize", "TokenizeStream", tokenize_);
  ServeRequests("Decode", "DecodeStream", decode_);
}

}  // namespace attendant::tei
