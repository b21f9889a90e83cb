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

// Every tensor of the file: F64, F32, F16, BF16, BOOL and integers, converted as by ReadNpy.
// FAILED_PRECONDITION, with the file and the reason, for everything else.
absl::StatusOr<std::map<std::string, Array>> ReadSafetensors(const std::string& path);
// Reads the bytes of such a file; errors call it `name`.
absl::StatusOr<std::map<std::string, Array>> ParseSafetensors(absl::string_view bytes,
                                                              const std::string& name);

// The tensor called `name`, or the only tensor of the file. FAILED_PRECONDITION lists the tensors
// if there is none of that name.
absl::StatusOr<Array> ReadSafetensor(const std::string& path, const std::string& name);

// Writes the tensors as F32. Errors are those of WriteFile.
absl::Status WriteSafetensors(const std::string& path,
                              const std::map<std::string, const Tensor*>& tensors);

}  // namespace attendant::client
