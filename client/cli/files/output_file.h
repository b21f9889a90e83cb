// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant::client {

// Files that a command writes after its work. The functions give FAILED_PRECONDITION with the
// file's name and the system's reason.

// OK if the file can be written. Called before the work starts, so that a mistyped name fails at
// once. Neither changes nor creates the file. OK for an empty name, which means no file.
absl::Status CheckWritable(const std::string& path);

// Writes the parts one after another, in place of what the file held. After an error the file holds
// what it held, unless it is another user's, has several names, or its folder takes no new files.
absl::Status WriteFile(const std::string& path, std::span<const absl::string_view> parts);
inline absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  return WriteFile(path, std::span(&contents, 1));
}

}  // namespace attendant::client
