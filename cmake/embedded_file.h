// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

namespace attendant {

// A file whose contents EmbedFiles.cmake wrote into a program.
struct EmbeddedFile {
  absl::string_view name;  // without its folder: "page.js"
  absl::string_view bytes;
};

}  // namespace attendant
