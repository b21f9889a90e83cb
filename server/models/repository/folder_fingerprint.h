// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

// The files of a folder and of the folders in it, as text: the place, size and time of each, and
// for a symbolic link those of the file or folder that it leads to. Two equal texts: no file was
// added, changed or removed in between. Empty for a folder without files. Reads the disk, but no
// file. UNAVAILABLE: not all files can be listed now. A link that leads nowhere is no file. A
// folder to which several links lead is listed once, and none that holds `directory`.
absl::StatusOr<std::string> FolderFingerprint(const std::string& directory);

}  // namespace attendant
