// SPDX-License-Identifier: Apache-2.0
// Inputs of folder_fuzz.cc: every file of every folder as it is, and names of no folder.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/check.h"
#include "tests/fuzz/folder_files.h"
#include "tests/fuzz/seeds.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = 1 << 20;

}  // namespace

void FolderSeeds(const Seeds& seeds) {
  const fs::path root = std::string(kFolderRoot);
  seeds.Add("outside", "tokens/.. config.json\n{}");
  seeds.Add("zero", std::string("\0tokens/bge_m3 config.json\n{}", 29));
  for (const auto& kind : fs::directory_iterator(root)) {
    if (!kind.is_directory() || kind.path().filename() == "attention") continue;
    for (const auto& folder : fs::directory_iterator(kind.path())) {
      if (!folder.is_directory()) continue;
      const std::string name = fs::relative(folder.path(), root);
      for (const absl::string_view file : kFolderFiles) {
        const fs::path path = folder.path() / std::string(file);
        if (!fs::exists(path)) continue;
        const absl::StatusOr<std::string> bytes = ReadTextFile(path, kMostBytes);
        ATTENDANT_CHECK(bytes.ok());
        const std::string both = absl::StrCat(name, " ", file);
        seeds.Add(absl::StrReplaceAll(both, {{"/", "_"}, {" ", "_"}}),
                  absl::StrCat(both, "\n", *bytes));
      }
    }
  }
}

}  // namespace attendant
