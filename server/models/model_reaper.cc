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
    model->life_id = ++state_->last_id;
    state_->unfreed.insert(model->life_id);
  }
  return {model.release(), [state = state_](ServableModel* last) {
            Bury(*state, std::unique_ptr<ServableModel>(last));
          }};
}

bool ModelReaper::AwaitFreed(const std::vector<int64_t>& ids, absl::Time deadline) {
  State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  const auto freed = [&]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
    return std::none_of(ids.begin(), ids.end(),
                        [&](int64_t id) ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
                          return state.unfreed.contains(id);
                        });
  };
  while (!freed() && SteadyNow() < deadline) state.freed.WaitUntil(state.mutex, deadline);
  return freed();
}

bool ModelReaper::IsFreed(int64_t id) const {
  absl::MutexLock lock(&state_->mutex);
  return !state_->unfreed.contains(id);
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
    std::vector<int64_t> freed;
    for (const auto& model : dead) freed.push_back(model->life_id);
    dead.clear();
    GiveBackFreedMemory();
    absl::MutexLock lock(&state.mutex);
    for (const int64_t id : freed) state.unfreed.erase(id);
    state.freed.SignalAll();
  }
}

}  // namespace attendant
