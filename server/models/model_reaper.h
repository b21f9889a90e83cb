// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
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

  // From now on the model is shared, and freed after the last share is gone. Sets its life_id.
  std::shared_ptr<ServableModel> Share(std::unique_ptr<ServableModel> model);

  // Waits until the models with these life_ids are freed, or `deadline`, a steady time, passes.
  // Returns whether they are.
  bool AwaitFreed(const std::vector<int64_t>& ids, absl::Time deadline);
  bool IsFreed(int64_t id) const;

 private:
  // Outlives the reaper where a share does.
  struct State {
    absl::Mutex mutex;
    SteadyCondVar freed;  // unfreed lost some
    std::vector<std::unique_ptr<ServableModel>> dead ABSL_GUARDED_BY(mutex);
    std::set<int64_t> unfreed ABSL_GUARDED_BY(mutex);
    int64_t last_id ABSL_GUARDED_BY(mutex) = 0;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
  };
  static void Bury(State& state, std::unique_ptr<ServableModel> model);
  static void Reap(State& state);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace attendant
