// SPDX-License-Identifier: Apache-2.0
// Each JSON file of a model's folder is opened once, whoever loads it: what a load says of a model
// comes from one state of its files.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kernels/backends/backends.h"
#include "server/models/inspect/folder_report.h"
#include "server/models/model_loader.h"
#include "server/threads/task_pool.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

// Counts, by the kernel's word, how often each file of a folder is opened.
class OpenCounter {
 public:
  explicit OpenCounter(const fs::path& folder) : descriptor_(inotify_init1(IN_NONBLOCK)) {
    Watch(folder, "");
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_directory()) Watch(entry.path(), fs::relative(entry.path(), folder) / "");
    }
  }
  ~OpenCounter() { close(descriptor_); }
  OpenCounter(const OpenCounter&) = delete;
  OpenCounter& operator=(const OpenCounter&) = delete;

  // Those of JSON files since the last call, by their path; a file that is not there is not opened.
  // Without tokenizer.json, whose bytes are compared with those of another one.
  std::map<std::string, int> Take() {
    std::map<std::string, int> opens;
    alignas(inotify_event) char buffer[1 << 14];
    for (ssize_t bytes; (bytes = read(descriptor_, buffer, sizeof(buffer))) > 0;) {
      for (const char* at = buffer; at < buffer + bytes;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        at += sizeof(inotify_event) + event->len;
        if ((event->mask & IN_OPEN) == 0 || (event->mask & IN_ISDIR) != 0 || event->len == 0) {
          continue;
        }
        const fs::path file = folders_.at(event->wd) / event->name;
        if (file.extension() != ".json" || file.filename() == "tokenizer.json") continue;
        ++opens[file.string()];
      }
    }
    return opens;
  }

 private:
  // The kernel counts an event once that is like the one before it: between two opens stands a
  // close.
  void Watch(const fs::path& folder, const fs::path& name) {
    const int watch = inotify_add_watch(descriptor_, folder.c_str(), IN_OPEN | IN_CLOSE);
    EXPECT_GE(watch, 0) << folder;
    folders_[watch] = name;
  }

  int descriptor_;
  std::map<int, fs::path> folders_;
};

absl::Status Load(const std::string& folder) {
  const auto backend = MakeBackend("reference", {.load_threads = 1}).value();
  ServerMetrics metrics("test");
  TaskPool completions(1, "completion");
  ModelOptions options;
  options.dtype = "f32";
  options.memory = std::make_shared<ModelMemory>(0, [] { return std::nullopt; });
  options.batcher.max_batch_tokens = 64;
  options.batcher.max_batch_sequences = 8;
  options.batcher.max_queued_tokens = 64;
  options.batcher.max_queued_requests = 8;
  return LoadModel({.name = "m", .directory = folder}, *backend, options, metrics,
                   completions.executor())
      .status();
}

class FolderReads : public testing::TestWithParam<const char*> {};

TEST_P(FolderReads, EachJsonFileIsOpenedOnce) {
  const TempDirectory directory;
  fs::copy(fs::path("tests/golden") / GetParam(), directory.path(), fs::copy_options::recursive);
  OpenCounter counter(directory.path());
  const auto expect_once = [&counter](const char* by) {
    std::map<std::string, int> opens = counter.Take();
    EXPECT_TRUE(opens.contains("config.json") || opens.contains("router_config.json")) << by;
    for (const auto& [file, times] : opens) EXPECT_EQ(times, 1) << by << ": " << file;
  };
  const absl::Status inspected = InspectFolder(directory.path()).status;
  EXPECT_TRUE(inspected.ok()) << inspected;
  expect_once("InspectFolder");
  const absl::Status loaded = Load(directory.path());
  EXPECT_TRUE(loaded.ok()) << loaded;
  expect_once("LoadModel");
}

INSTANTIATE_TEST_SUITE_P(Golden, FolderReads,
                         testing::Values("sentence/many_modules", "sentence/prompts",
                                         "colbert/pylate_bert", "colbert/multi_vector_encoder",
                                         "tokens/bge_m3", "tokens/distilbert_splade", "routed/idf",
                                         "routed/routed", "encoder/tiny_esm",
                                         "classifier/bert_reranker"));

}  // namespace
}  // namespace attendant
