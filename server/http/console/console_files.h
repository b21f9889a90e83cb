// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/strings/string_view.h"

namespace attendant {

struct EmbeddedFile {
  absl::string_view name;  // "app.js"
  absl::string_view bytes;
};

// The files of `web`, as they were when the server was built.
std::span<const EmbeddedFile> ConsoleFiles();

}  // namespace attendant
