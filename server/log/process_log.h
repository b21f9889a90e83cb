// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace attendant {

// Sends spdlog's default logger to standard error: as lines of text, or, with "json", as one JSON
// object a line with time, level and message. `level` is a value of --log_level.
//
// The lines of gRPC and protobuf go there too. What ends the process is critical. Clients cause
// gRPC's other errors: they are warnings, at most 60 a minute, each cut after 512 bytes and without
// control characters. All else is debug; gRPC itself leaves that out unless the environment has
// GRPC_VERBOSITY.
void ConfigureLog(const std::string& format, const std::string& level);

}  // namespace attendant
