// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/models/servable_model.h"
#include "server/threads/steady_time.h"

namespace attendant {

// Frees models on a thread of its own. The last one to share a model may be a transport's thread,
// which must not wait for the model's workers, nor free its memory. Thread-safe.
class ModelReaper {
 public:
  ModelReaper();
  // Frees what is left. Models that are still shared then are freed by the last one that shares
  // them.
  ~ModelReaper();
  ModelReaper(const ModelReaper&) = delete;
  ModelReaper& operator=(const ModelReaper&) = delete;

  // From now on the model is shared, and freed after the last share is gone.
  std::shared_ptr<ServableModel> Share(std::unique_ptr<ServableModel> model);

  // Waits until at most `models` shared models are not freed, or `deadline`, a steady time, passes.
  // Returns how many more there are.
  int64_t AwaitFreed(int64_t models, absl::Time deadline);

 private:
  // Outlives the reaper where a share does.
  struct State {
    absl::Mutex mutex;
    SteadyCondVar freed;  // unfreed fell
    std::vector<std::unique_ptr<ServableModel>> dead ABSL_GUARDED_BY(mutex);
    int64_t unfreed ABSL_GUARDED_BY(mutex) = 0;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
  };
  static void Bury(State& state, std::unique_ptr<ServableModel> model);
  static void Reap(State& state);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace attendant
