// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant {

// The result of the scan of a message.
struct WireSummary {
  // The most that the message takes once it is parsed, with the server's copies of its numbers.
  int64_t memory_bytes = 0;
  // Valid UTF-8 of at most kMaxIdBytes, or empty.
  std::string id;
  // The beginning of a long name: no model's name is so long.
  std::string model;
};

// Reads a message of `size` bytes once, from its first byte to its last, without memory that grows
// with it: so that no message is parsed that would take much more memory than its bytes.
// INVALID_ARGUMENT names the field that has too many elements, comes twice though it is not
// repeated, or does not end inside its message; more unknown fields than kMaxUnknownFields; groups;
// an id of more than kMaxIdBytes. Whether strings are UTF-8 is left to the parser. Fills `summary`
// as far as it got.
absl::Status ScanWire(const WireSchema& schema, int64_t size,
                      google::protobuf::io::ZeroCopyInputStream& bytes, WireSummary& summary);

}  // namespace attendant
