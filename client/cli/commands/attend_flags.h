// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/attention.h"
#include "client/cli/files/array.h"
#include "client/flags/flag_parser.h"

namespace attendant::client {

// The flags of `attend`, and the request that they stand for.
struct AttendFlags {
  AttendRequest request;  // the fields that need no file
  std::string input;      // a safetensors file with tensors of the names below
  std::string query, key, value, mask, key_padding_mask, learned;  // files
  std::vector<std::string> parameters;                             // NAME=FILE
  std::string query_lengths, key_lengths, slopes;                  // numbers, or a file
  double scale = 0;                                                // 0: the kind's own

  void AddTo(FlagParser& flags);

  // Reads the files. FAILED_PRECONDITION names the file, or the flag, and what is wrong.
  absl::StatusOr<AttendRequest> Request() const;

 private:
  void AddOperands(FlagParser& flags);
  void AddComputation(FlagParser& flags);
  void AddPositions(FlagParser& flags);
};

}  // namespace attendant::client
