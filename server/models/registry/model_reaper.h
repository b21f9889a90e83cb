// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/models/servable_model.h"
#include "server/threads/steady_time.h"

namespace attendant {

// The end of models. Frees each on a thread of its own: the last one to share a model may be a
// transport's thread, which must not wait for the model's workers, nor free its memory; and workers
// that do not end keep no other model in memory. Knows the models that were given up, until they
// are freed. Thread-safe.
class ModelReaper {
 public:
  ModelReaper();
  // Frees what is left. Models that are still shared then are freed by the last one that shares
  // them.
  ~ModelReaper();
  ModelReaper(const ModelReaper&) = delete;
  ModelReaper& operator=(const ModelReaper&) = delete;

  // Makes the model shared: it is freed after the last share is gone. Sets its life_id.
  std::shared_ptr<ServableModel> Share(std::unique_ptr<ServableModel> model);

  // Takes a share away, so that the model is freed after its last request. REQUIRES: Share made it.
  void GiveUp(std::shared_ptr<ServableModel> model);
  // Shares of the models that are given up.
  std::vector<std::shared_ptr<ServableModel>> GivenUp() const;

  // Waits until the models with these life_ids are freed, or `deadline`, a steady time, passes.
  // Returns whether they are.
  bool AwaitFreed(const std::vector<int64_t>& ids, absl::Time deadline);
  // Like AwaitFreed, for the given-up models of this name, or of all names for "". Models that End
  // has ended are left out: their workers may never end.
  bool AwaitGivenUp(const std::string& name, absl::Time deadline);

  // Ends the requests of the models of this name that are given up, or with "" of all, with
  // UNAVAILABLE. Then waits until they are freed, for kEndTime at most.
  void End(const std::string& name);

  static constexpr absl::Duration kEndTime = absl::Seconds(1);  // to free a model without requests

 private:
  struct Life {
    std::weak_ptr<ServableModel> model;
    std::string name;
    bool given_up = false;
    bool ended = false;
  };
  // Outlives the reaper where a share does.
  struct State {
    absl::Mutex mutex;
    SteadyCondVar freed;  // unfreed lost some
    std::vector<std::unique_ptr<ServableModel>> dead ABSL_GUARDED_BY(mutex);
    std::map<int64_t, Life> unfreed ABSL_GUARDED_BY(mutex);  // by life_id
    int64_t last_id ABSL_GUARDED_BY(mutex) = 0;
    int64_t being_freed ABSL_GUARDED_BY(mutex) = 0;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
  };
  static bool IsGivenUp(const Life& life, const std::string& name) {
    return life.given_up && (name.empty() || life.name == name);
  }
  static void Bury(State& state, std::unique_ptr<ServableModel> model);
  static void Reap(const std::shared_ptr<State>& shared);
  static void Free(State& state, ServableModel* model);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace attendant
