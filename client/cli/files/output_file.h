// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant::client {

// Files that a command writes after its work. The functions give FAILED_PRECONDITION with the
// file's name and the system's reason.

// Whether the file can be written, for the start of the work: a mistyped name costs none. The file
// stays as it is, or is not made. An empty name is none.
absl::Status CheckWritable(const std::string& path);

// Writes the parts one after another, in place of what the file held.
absl::Status WriteFile(const std::string& path, std::span<const absl::string_view> parts);
inline absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  return WriteFile(path, std::span(&contents, 1));
}

}  // namespace attendant::client
