// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/model_reaper.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/models/memory/model_memory.h"

namespace attendant {

ModelReaper::ModelReaper() : thread_([state = state_] { Reap(state); }) {
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
  std::shared_ptr<ServableModel> shared(model.release(), [state = state_](ServableModel* last) {
    Bury(*state, std::unique_ptr<ServableModel>(last));
  });
  absl::MutexLock lock(&state_->mutex);
  shared->life_id = ++state_->last_id;
  state_->unfreed[shared->life_id] = {.model = shared, .name = shared->name};
  return shared;
}

void ModelReaper::GiveUp(std::shared_ptr<ServableModel> model) {
  // `model` may be the last share: it ends without the lock, which Bury takes.
  absl::MutexLock lock(&state_->mutex);
  state_->unfreed.at(model->life_id).given_up = true;
}

std::vector<std::shared_ptr<ServableModel>> ModelReaper::GivenUp() const {
  std::vector<std::shared_ptr<ServableModel>> models;
  absl::MutexLock lock(&state_->mutex);
  for (const auto& [id, life] : state_->unfreed) {
    if (!life.given_up) continue;
    if (std::shared_ptr<ServableModel> model = life.model.lock()) {
      models.push_back(std::move(model));
    }
  }
  return models;
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

bool ModelReaper::AwaitGivenUp(const std::string& name, absl::Time deadline) {
  std::vector<int64_t> ids;
  {
    absl::MutexLock lock(&state_->mutex);
    for (const auto& [id, life] : state_->unfreed) {
      if (IsGivenUp(life, name) && !life.ended) ids.push_back(id);
    }
  }
  return AwaitFreed(ids, deadline);
}

void ModelReaper::End(const std::string& name) {
  std::vector<int64_t> ids;
  std::vector<std::shared_ptr<ServableModel>> models;
  {
    absl::MutexLock lock(&state_->mutex);
    for (auto& [id, life] : state_->unfreed) {
      if (!IsGivenUp(life, name)) continue;
      if (!std::exchange(life.ended, true)) ids.push_back(id);
      models.push_back(life.model.lock());
    }
  }
  for (auto& model : models) {
    if (model == nullptr) continue;  // it is being freed
    const absl::Status why = absl::UnavailableError(
        absl::StrCat("model '", model->name, "' was unloaded before the request was done"));
    model->batcher->End(why);
    model.reset();
  }
  AwaitFreed(ids, SteadyNow() + kEndTime);
}

void ModelReaper::Bury(State& state, std::unique_ptr<ServableModel> model) {
  absl::MutexLock lock(&state.mutex);
  if (!state.stopping) return state.dead.push_back(std::move(model));
  state.unfreed.erase(model->life_id);  // its weak share would keep the state
}

void ModelReaper::Reap(const std::shared_ptr<State>& shared) {
  State& state = *shared;
  const auto work = [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
    return !state.dead.empty() || (state.stopping && state.being_freed == 0);
  };
  while (true) {
    std::vector<std::unique_ptr<ServableModel>> dead;
    {
      absl::MutexLock lock(&state.mutex, absl::Condition(&work));
      dead.swap(state.dead);
      if (dead.empty()) return;  // stopping
      state.being_freed += static_cast<int64_t>(dead.size());
    }
    for (auto& model : dead) {
      ServableModel* const last = model.release();
      try {
        std::thread thread([shared, last] { Free(*shared, last); });
        pthread_setname_np(thread.native_handle(), "model-free");
        thread.detach();
      } catch (const std::system_error&) {  // no thread is left
        Free(state, last);
      }
    }
  }
}

void ModelReaper::Free(State& state, ServableModel* model) {
  const int64_t id = model->life_id;
  delete model;
  GiveBackFreedMemory();
  absl::MutexLock lock(&state.mutex);
  state.unfreed.erase(id);
  --state.being_freed;
  state.freed.SignalAll();
}

}  // namespace attendant
