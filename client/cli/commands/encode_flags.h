// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/client.h"
#include "client/flags/flag_parser.h"
#include "client/ordered_encoder.h"

namespace attendant::client {

// The flags that choose the model of an encode request.
struct ModelFlags {
  std::string name;
  int64_t version = 0;

  void AddTo(FlagParser& flags);
  // Names the model in a request: that of --model, or else the only one of the server.
  absl::Status Choose(Client& client, EncodeRequest& request) const;
};

// The flags of commands that send encode requests.
struct RequestFlags {
  ModelFlags model;
  std::string file;
  Truncation truncation = Truncation::kTextOnly;
  int32_t priority = 0;
  OrderedEncoder::Limits limits;

  void AddTo(FlagParser& flags);

  // A request without sequences, for the model of ModelFlags.
  absl::StatusOr<EncodeRequest> Prototype(Client& client) const;

  // Sends the texts of ForEachText in requests like `prototype`. `take` is called with each answer,
  // in the order of the texts. FAILED_PRECONDITION without texts.
  absl::Status SendTexts(Client& client, EncodeRequest prototype,
                         std::span<const std::string> arguments, Io& io,
                         OrderedEncoder::Sink take) const;
};

// The flags that choose the prompt of texts.
struct PromptFlags {
  std::string name;
  bool none = false;

  void AddTo(FlagParser& flags);
  // EncodeRequest::prompt_name. FAILED_PRECONDITION when both flags are given.
  absl::StatusOr<std::optional<std::string>> Name() const;
};

// The flags of commands whose requests may have a prompt.
struct TextFlags : RequestFlags {
  PromptFlags prompt;

  void AddTo(FlagParser& flags);
  absl::StatusOr<EncodeRequest> Prototype(Client& client) const;
};

// The flags that `embed` and `encode` share.
struct EncodeFlags : TextFlags {
  std::string output;
  DType dtype = DType::kF32;

  void AddTo(FlagParser& flags);
  // Errors are also those of CheckWritable(output).
  absl::StatusOr<EncodeRequest> Prototype(Client& client) const;
};

}  // namespace attendant::client
