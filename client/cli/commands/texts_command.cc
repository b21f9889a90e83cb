// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/texts_command.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "kernels/core/status_macros.h"

namespace attendant::client {

void TextsCommand::AddFlags(FlagParser& flags) {
  flags_.AddTo(flags);
  common_.AddTo(flags);
}

int TextsCommand::Run(std::span<const std::string> arguments, Io& io) {
  return RunWithClient(common_, io, [&](Client& client) { return Send(client, arguments, io); });
}

absl::Status TextsCommand::Send(Client& client, std::span<const std::string> arguments, Io& io) {
  ATTENDANT_ASSIGN_OR_RETURN(EncodeRequest prototype, flags_.Prototype(client));
  Ask(prototype);
  int64_t num_texts = 0;
  const auto take = [&](const EncodeRequest& request, const EncodeResult& result) -> absl::Status {
    if (num_texts == 0) ATTENDANT_RETURN_IF_ERROR(Learn(client, request));
    ATTENDANT_RETURN_IF_ERROR(Check(result));
    for (size_t i = 0; i < request.sequences.size(); ++i, ++num_texts) {
      const AnsweredText answered{
          .text = std::get<std::string>(request.sequences[i]), .result = result, .index = i};
      if (common_.json) {
        FloatJson json{{"index", num_texts},
                       {"text", answered.text},
                       {"truncated", answered.info().truncated}};
        AddJson(answered, json);
        io.out << Dump(json) << "\n";
      } else {
        Write(answered, io);
      }
    }
    return io.out ? absl::OkStatus() : absl::FailedPreconditionError("cannot write the output");
  };
  return flags_.SendTexts(client, std::move(prototype), arguments, io, take);
}

}  // namespace attendant::client
