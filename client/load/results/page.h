// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/load/results/result.h"

namespace attendant {

struct EmbeddedFile {
  absl::string_view name;  // "page.js"
  absl::string_view bytes;
};

// The files of `page`, as they were when the client was built.
std::span<const EmbeddedFile> LoadPageFiles();

namespace client {

// One HTML page without references to other files: figures and charts of the loads, and their
// latency against the offered load where there are several. `summary` is a sentence for its top;
// may be empty.
std::string MakePage(const std::vector<LoadResult>& results, const std::string& summary);

}  // namespace client
}  // namespace attendant
