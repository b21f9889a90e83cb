// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/flags/flag_parser.h"
#include "client/ordered_encoder.h"

namespace attendant::client {

// The flags of commands that send encode requests.
struct RequestFlags {
  std::string model;
  std::string file;
  Truncation truncation = Truncation::kTextOnly;
  int32_t priority = 0;
  OrderedEncoder::Limits limits;

  void AddTo(FlagParser& flags);

  // A request without sequences, for the model of --model or else the only model of the server.
  absl::StatusOr<EncodeRequest> Prototype(Client& client) const;
};

// The flags that `embed` and `encode` share.
struct EncodeFlags : RequestFlags {
  std::string output;
  DType dtype = DType::kF32;

  void AddTo(FlagParser& flags);
  absl::StatusOr<EncodeRequest> Prototype(Client& client) const;
};

}  // namespace attendant::client
