// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace attendant {

// Writes the lines grpc=PORT and http=PORT to `path`, at once or not at all: who finds the file
// finds it whole.
absl::Status WritePortFile(const std::string& path, int grpc_port, int http_port);

}  // namespace attendant
