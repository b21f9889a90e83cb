// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/load/protocols/protocols.h"

namespace attendant::client {

// A service that `attendant load` calls, and what its requests can say.
struct LoadProtocol {
  const char* word;
  const char* title;
  absl::StatusOr<Target> (*make)(const TargetSpec& spec);
  bool has_streams = false;
  bool needs_model = false;   // else a server's only one is found
  bool has_versions = false;  // a request can name one of its model's
  // Whether its requests use these flags.
  bool takes_output = false, takes_vocab = false, takes_shape = false, takes_tensors = false;
};

std::span<const LoadProtocol> LoadProtocols();
// REQUIRES: it is the word of one of LoadProtocols().
const LoadProtocol& FindLoadProtocol(absl::string_view word);

}  // namespace attendant::client
