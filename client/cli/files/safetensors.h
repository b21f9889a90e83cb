// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/files/array.h"

namespace attendant::client {

// A safetensors file: 8 bytes (little-endian) for the size of a JSON header, the header, the
// values.

// Every tensor of the file: F64, F32, F16, BF16, BOOL and integers, as ReadNpy converts them.
// FAILED_PRECONDITION, naming the file and what is wrong, for everything else.
absl::StatusOr<std::map<std::string, Array>> ReadSafetensors(const std::string& path);
// The same of a file's bytes; `name` stands in the errors.
absl::StatusOr<std::map<std::string, Array>> ParseSafetensors(absl::string_view bytes,
                                                              const std::string& name);

// One of them, or, where it has only one, that one; FAILED_PRECONDITION, listing them, when the one
// called `name` is not there.
absl::StatusOr<Array> ReadSafetensor(const std::string& path, const std::string& name);

// As F32.
absl::Status WriteSafetensors(const std::string& path,
                              const std::map<std::string, const Tensor*>& tensors);

}  // namespace attendant::client
