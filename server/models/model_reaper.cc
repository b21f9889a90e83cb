// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_reaper.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "server/models/memory/model_memory.h"

namespace attendant {

ModelReaper::ModelReaper() : thread_([state = state_] { Reap(*state); }) {
  pthread_setname_np(thread_.native_handle(), "model-reaper");
}

ModelReaper::~ModelReaper() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
  }
  thread_.join();
}

std::shared_ptr<ServableModel> ModelReaper::Share(std::unique_ptr<ServableModel> model) {
  {
    absl::MutexLock lock(&state_->mutex);
    ++state_->unfreed;
  }
  return {model.release(), [state = state_](ServableModel* last) {
            Bury(*state, std::unique_ptr<ServableModel>(last));
          }};
}

int64_t ModelReaper::AwaitFreed(int64_t models, absl::Time deadline) {
  State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  while (state.unfreed > models && SteadyNow() < deadline) {
    state.freed.WaitUntil(state.mutex, deadline);
  }
  return std::max<int64_t>(state.unfreed - models, 0);
}

void ModelReaper::Bury(State& state, std::unique_ptr<ServableModel> model) {
  absl::MutexLock lock(&state.mutex);
  if (!state.stopping) state.dead.push_back(std::move(model));
}

void ModelReaper::Reap(State& state) {
  const auto work = [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
    return state.stopping || !state.dead.empty();
  };
  while (true) {
    std::vector<std::unique_ptr<ServableModel>> dead;
    {
      absl::MutexLock lock(&state.mutex, absl::Condition(&work));
      dead.swap(state.dead);
      if (dead.empty()) return;  // stopping
    }
    const auto freed = static_cast<int64_t>(dead.size());
    dead.clear();
    GiveBackFreedMemory();
    absl::MutexLock lock(&state.mutex);
    state.unfreed -= freed;
    state.freed.SignalAll();
  }
}

}  // namespace attendant
