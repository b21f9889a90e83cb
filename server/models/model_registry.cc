// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_registry.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernels/core/quote.h"
#include "server/models/model_loader.h"

namespace attendant {
namespace {

absl::Status Unavailable(const ModelStatus& status) {
  switch (status.state) {
    case ModelState::kReady:
      return absl::OkStatus();
    case ModelState::kLoading:
      return absl::UnavailableError(absl::StrCat("model '", status.name, "' is loading"));
    case ModelState::kDraining:
      return absl::UnavailableError(
          absl::StrCat("model '", status.name, "' is draining: the server is stopping"));
    case ModelState::kFailed:
      break;
  }
  return absl::UnavailableError(
      absl::StrCat("model '", status.name, "' failed to load: ", status.error.message()));
}

}  // namespace

struct ModelRegistry::Impl {
  struct Entry {
    ModelSource source;
    ModelStatus status;
    std::unique_ptr<Model> model;
  };

  const ModelLoader load;
  ServerMetrics& metrics;
  const Executor executor;
  Listener listener;
  std::thread loading;

  mutable absl::Mutex mutex;
  std::vector<Entry> entries ABSL_GUARDED_BY(mutex);  // fixed in number once loading starts
  bool draining ABSL_GUARDED_BY(mutex) = false;

  Impl(ModelLoader loader, ServerMetrics& server_metrics, Executor run)
      : load(std::move(loader)), metrics(server_metrics), executor(std::move(run)) {}

  const Entry* FindEntry(absl::string_view name) const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    for (const Entry& entry : entries) {
      if (entry.status.name == name) return &entry;
    }
    return nullptr;
  }

  void AddEntries(std::vector<ModelSource> sources) {
    absl::MutexLock lock(&mutex);
    for (ModelSource& source : sources) {
      Entry entry;
      entry.status.name = source.name;
      entry.source = std::move(source);
      entries.push_back(std::move(entry));
    }
  }

  void Tell(const std::string& name, ModelState state) const {
    if (listener) listener(name, state);
  }

  void LoadAll() {
    for (size_t i = 0;; ++i) {
      ModelSource source;
      {
        absl::MutexLock lock(&mutex);
        if (draining || i == entries.size()) return;
        source = entries[i].source;
      }
      Loaded(i, load(source, metrics, executor));
    }
  }

  void Loaded(size_t index, absl::StatusOr<std::unique_ptr<Model>> model) {
    ModelState state;
    std::string name;
    {
      absl::MutexLock lock(&mutex);
      if (draining) return;
      Entry& entry = entries[index];
      state = entry.status.state = model.ok() ? ModelState::kReady : ModelState::kFailed;
      name = entry.status.name;
      if (model.ok()) {
        entry.model = *std::move(model);
        entry.status.model = entry.model.get();
      } else {
        entry.status.error = model.status();
      }
    }
    Tell(name, state);
  }

  // The models to wait for.
  std::vector<Model*> StartDraining() {
    std::vector<Model*> models;
    std::vector<std::string> changed;
    {
      absl::MutexLock lock(&mutex);
      draining = true;
      for (Entry& entry : entries) {
        if (entry.status.state == ModelState::kFailed) continue;
        entry.status.state = ModelState::kDraining;
        changed.push_back(entry.status.name);
        if (entry.model) models.push_back(entry.model.get());
      }
    }
    for (const std::string& name : changed) Tell(name, ModelState::kDraining);
    return models;
  }
};

ModelRegistry::ModelRegistry(ModelLoader loader, ServerMetrics& metrics, Executor executor)
    : impl_(std::make_unique<Impl>(std::move(loader), metrics, std::move(executor))) {}

ModelRegistry::ModelRegistry(const ModelOptions& options, ServerMetrics& metrics, Executor executor)
    : ModelRegistry(CheckpointLoader(options), metrics, std::move(executor)) {}

ModelRegistry::~ModelRegistry() {
  {
    absl::MutexLock lock(&impl_->mutex);
    impl_->draining = true;
  }
  if (impl_->loading.joinable()) impl_->loading.join();
}

void ModelRegistry::SetListener(Listener listener) { impl_->listener = std::move(listener); }

void ModelRegistry::SetModels(std::vector<ModelSource> sources) {
  impl_->AddEntries(std::move(sources));
}

void ModelRegistry::StartLoading() {
  impl_->loading = std::thread([impl = impl_.get()] { impl->LoadAll(); });
}

absl::StatusOr<Model*> ModelRegistry::Find(absl::string_view name) const {
  absl::ReaderMutexLock lock(&impl_->mutex);
  const Impl::Entry* entry = impl_->FindEntry(name);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no model ", Quote(name)));
  }
  if (absl::Status status = Unavailable(entry->status); !status.ok()) return status;
  return entry->model.get();
}

bool ModelRegistry::Knows(absl::string_view name) const {
  absl::ReaderMutexLock lock(&impl_->mutex);
  return impl_->FindEntry(name) != nullptr;
}

std::vector<ModelStatus> ModelRegistry::List() const {
  absl::ReaderMutexLock lock(&impl_->mutex);
  std::vector<ModelStatus> list;
  for (const Impl::Entry& entry : impl_->entries) list.push_back(entry.status);
  return list;
}

absl::Status ModelRegistry::Ready() const {
  absl::ReaderMutexLock lock(&impl_->mutex);
  if (impl_->entries.empty()) return absl::UnavailableError("no model was given yet");
  for (const Impl::Entry& entry : impl_->entries) {
    if (absl::Status status = Unavailable(entry.status); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void ModelRegistry::Drain(absl::Time deadline) {
  for (Model* model : impl_->StartDraining()) model->batcher->Drain(deadline);
}

}  // namespace attendant
