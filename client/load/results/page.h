// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/load/results/result.h"
#include "cmake/embedded_file.h"

namespace attendant {

// The files of `page`, as they were when the client was built.
std::span<const EmbeddedFile> LoadPageFiles();

namespace client {

// One HTML page without references to other files: figures and charts of the loads, and their
// latency against the offered load where there are several. `summary` is a sentence for its top;
// may be empty.
std::string MakePage(const std::vector<LoadResult>& results, const std::string& summary);

}  // namespace client
}  // namespace attendant
