// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_loader.h"
#include "server/models/registry/model_registry.h"
#include "server/threads/task_pool.h"
#include "tests/server/gated_backend.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {

// A registry over folders of a temporary one, in which "tiny" is a model. Loads and batches pass
// gates.
class ModelRegistryTest : public ::testing::Test {
 protected:
  using Changes = std::vector<std::pair<std::string, ModelState>>;

  ModelRegistryTest() : ModelRegistryTest(RegistryOptions{}) {}
  explicit ModelRegistryTest(RegistryOptions options)
      : registry_(Loader(), metrics_, Run(), std::move(options)) {
    WriteTinyModel(directory_ / "tiny");
    registry_.SetListener([this](const ModelStatus& status, ModelNews) {
      absl::MutexLock lock(&mutex_);
      changes_.emplace_back(status.name, status.state);
    });
  }
  ~ModelRegistryTest() override {
    load_gate_.Open();
    run_gate_.Open();
  }

  ModelLoader Loader() {
    return [this](const ModelSource& source, ServerMetrics& metrics, const Executor& executor) {
      ++loads_;
      load_gate_.Pass();
      if (source.version > highest_with_memory_) {
        return absl::StatusOr<std::unique_ptr<ServableModel>>(
            absl::ResourceExhaustedError("memory is short"));
      }
      return CheckpointLoader(*backend_, options_)(source, metrics, executor);
    };
  }
  Executor Run() {
    return [this](TaskPool::Task task) { completions_.Post(std::move(task)); };
  }

  Changes changes() {
    absl::MutexLock lock(&mutex_);
    return changes_;
  }
  void AwaitChanges(size_t count) {
    const auto there = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return changes_.size() >= count;
    };
    absl::MutexLock lock(&mutex_, absl::Condition(&there));
  }
  // Until the model has come into this state so many times.
  void AwaitChange(const std::string& name, ModelState state, int64_t times = 1) {
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::count(changes_.begin(), changes_.end(), std::pair(name, state)) >= times;
    };
    absl::MutexLock lock(&mutex_, absl::Condition(&there));
  }

  // Loads "tiny", which must fail. What is said of it.
  std::string ErrorOfLoad() {
    registry_.SetModels({{"tiny", directory_ / "tiny"}});
    registry_.StartLoading();
    AwaitChanges(1);
    return std::string(registry_.List().front().error.message());
  }

  TempDirectory directory_;
  absl::Mutex mutex_;
  Changes changes_ ABSL_GUARDED_BY(mutex_);
  Gate load_gate_;
  Gate run_gate_;
  std::atomic<int> loads_{0};
  // Loads of higher versions find no memory.
  std::atomic<int64_t> highest_with_memory_{std::numeric_limits<int64_t>::max()};
  const std::unique_ptr<Backend> backend_ = MakeGatedBackend(run_gate_);
  ModelOptions options_{.dtype = "f32",
                        .replicas = {1, 1},
                        .batcher = {.max_batch_tokens = 48,
                                    .max_batch_sequences = 8,
                                    .max_queued_tokens = 1000,
                                    .max_queued_requests = 10,
                                    .max_queue_delay = absl::ZeroDuration()}};
  ServerMetrics metrics_{"test"};
  TaskPool completions_{1, "completion"};
  ModelRegistry registry_;
};

}  // namespace attendant
