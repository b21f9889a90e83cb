// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/metrics/metric_labels.h"

namespace boost::system {
class error_code;
}

namespace attendant {

// True if the client's bytes are not HTTP.
bool IsParseError(const boost::system::error_code& error);

// The connection's end: `late` if the time is over, else the client has left.
HttpEnd EndAfter(const boost::system::error_code& error, HttpEnd late);

// The same for TLS's handshake. A client that closes without a word of TLS, as a probe of the port
// does, has left.
HttpEnd EndAfterHandshake(const boost::system::error_code& error);

}  // namespace attendant
