// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "cmake/embedded_file.h"

namespace attendant {

// The files of `web`, as they were when the server was built.
std::span<const EmbeddedFile> ConsoleFiles();

}  // namespace attendant
