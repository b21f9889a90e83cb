// SPDX-License-Identifier: Apache-2.0
// A model's folder in which one file is not what it was: a folder of tests/golden, with one of
// kFolderFiles replaced.
//
// Input: the folder and the file, "tokens/bge_m3 tokenizer.json", up to a newline; the file.
//
// Ends the process, saying why, unless a refusal has a reason, and a folder that `attendant
// inspect` would serve loads, which computes batches of one token and of many.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "kernels/backends/backends.h"
#include "server/models/inspect/folder_report.h"
#include "server/models/model_loader.h"
#include "server/threads/task_pool.h"
#include "tests/fuzz/folder_files.h"
#include "tests/fuzz/harness.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

// A folder in a folder of kFolderRoot. A mutated name may lead elsewhere, or have a byte 0, which
// ends a path early.
bool IsFolder(absl::string_view name) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('/', 1));
  const auto is_plain = [](absl::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) {
      return absl::ascii_isalnum(c) || c == '_' || c == '-';
    });
  };
  std::error_code none;
  return is_plain(parts.first) && is_plain(parts.second) &&
         fs::is_directory(absl::StrCat(kFolderRoot, name), none);
}

// A copy of the folder whose files are links, but for `file`.
void MakeFolder(const fs::path& from, absl::string_view file, absl::string_view bytes,
                const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    const fs::path to = folder / fs::relative(entry.path(), from);
    if (entry.is_directory()) {
      fs::create_directories(to);
    } else if (fs::relative(entry.path(), from) != std::string(file)) {
      fs::create_symlink(fs::absolute(entry.path()), to);
    }
  }
  const fs::path path = fs::path(folder) / std::string(file);
  fs::create_directories(path.parent_path());
  WriteFile(path, std::string(bytes));
}

absl::Status Load(const std::string& folder) {
  static const auto& backend = *new auto(MakeBackend("cpu", {.load_threads = 1}).value());
  static auto& metrics = *new ServerMetrics("fuzz");
  static auto& completions = *new TaskPool(1, "completion");
  ModelOptions options;
  options.dtype = "f32";
  options.batcher.max_batch_tokens = 64;
  options.batcher.max_batch_sequences = 8;
  options.batcher.max_queued_tokens = 64;
  options.batcher.max_queued_requests = 8;
  const auto model = LoadModel({.name = "m", .directory = folder}, *backend, options, metrics,
                               completions.executor());
  completions.AwaitIdle();
  return model.status();
}

// False: the input does not say what to do.
bool Run(absl::string_view input) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(input, absl::MaxSplits('\n', 1));
  const std::pair<absl::string_view, absl::string_view> names =
      absl::StrSplit(parts.first, absl::MaxSplits(' ', 1));
  const bool known =
      std::count(std::begin(kFolderFiles), std::end(kFolderFiles), names.second) == 1;
  if (!known || !IsFolder(names.first)) return false;
  const TempDirectory directory;
  MakeFolder(absl::StrCat(kFolderRoot, names.first), names.second, parts.second, directory.path());
  const absl::Status inspected = InspectFolder(directory.path()).status;
  Require(inspected.ok() || !inspected.message().empty(),
          absl::StrCat("a refusal has a reason: ", inspected.ToString()));
  if (!inspected.ok()) return true;
  const absl::Status loaded = Load(directory.path());
  Require(loaded.ok(), absl::StrCat("what can be served loads: ", loaded.ToString()));
  return true;
}

}  // namespace
}  // namespace attendant

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return attendant::Run({reinterpret_cast<const char*>(data), size}) ? 0 : -1;
}
