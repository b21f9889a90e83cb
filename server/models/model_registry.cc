// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_registry.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernels/core/quote.h"
#include "server/models/attention_model.h"
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
    case ModelState::kLost:
      return absl::UnavailableError(absl::StrCat(
          "model '", status.name, "' has lost what it computed on: ", status.error.message()));
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
    std::unique_ptr<AnyModel> model;
    bool built_in = false;

    void SetModel(std::unique_ptr<AnyModel> loaded) {
      model = std::move(loaded);
      status.model = dynamic_cast<Model*>(model.get());
      status.attention = dynamic_cast<AttentionModel*>(model.get());
      status.state = ModelState::kReady;
    }
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

  // One that is ready.
  absl::StatusOr<const Entry*> RequireEntry(absl::string_view name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    const Entry* entry = FindEntry(name);
    if (entry == nullptr) {
      return absl::NotFoundError(absl::StrCat("there is no model ", Quote(name)));
    }
    if (absl::Status status = Unavailable(entry->status); !status.ok()) return status;
    return entry;
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
        if (entries[i].built_in) continue;
        source = entries[i].source;
      }
      Loaded(i, load(source, metrics, executor));
    }
  }

  void Loaded(size_t index, absl::StatusOr<std::unique_ptr<AnyModel>> model) {
    ModelState state;
    std::string name;
    Batcher* batcher = nullptr;
    {
      absl::MutexLock lock(&mutex);
      if (draining) return;
      Entry& entry = entries[index];
      if (model.ok()) {
        batcher = (*model)->batcher.get();
        entry.SetModel(*std::move(model));
      } else {
        entry.status.state = ModelState::kFailed;
        entry.status.error = model.status();
      }
      state = entry.status.state;
      name = entry.status.name;
    }
    Tell(name, state);
    if (batcher == nullptr) return;
    batcher->SetLostListener([this, index](const absl::Status& why) { Lost(index, why); });
  }

  void Lost(size_t index, const absl::Status& why) {
    std::string name;
    {
      absl::MutexLock lock(&mutex);
      Entry& entry = entries[index];
      if (entry.status.state != ModelState::kReady) return;  // it is draining: soon over
      entry.status.state = ModelState::kLost;
      entry.status.error = why;
      name = entry.status.name;
    }
    Tell(name, ModelState::kLost);
  }

  // The models to wait for.
  std::vector<AnyModel*> StartDraining() {
    std::vector<AnyModel*> models;
    std::vector<std::string> changed;
    {
      absl::MutexLock lock(&mutex);
      draining = true;
      for (Entry& entry : entries) {
        if (!entry.status.error.ok()) continue;  // it failed or is lost
        entry.status.state = ModelState::kDraining;
        if (!entry.built_in) changed.push_back(entry.status.name);
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

void ModelRegistry::AddBuiltIn(std::unique_ptr<AnyModel> model) {
  absl::MutexLock lock(&impl_->mutex);
  Impl::Entry entry;
  entry.status.name = model->name;
  entry.built_in = true;
  entry.SetModel(std::move(model));
  impl_->entries.push_back(std::move(entry));
}

absl::StatusOr<Model*> ModelRegistry::Find(absl::string_view name) const {
  absl::ReaderMutexLock lock(&impl_->mutex);
  const absl::StatusOr<const Impl::Entry*> entry = impl_->RequireEntry(name);
  if (!entry.ok()) return entry.status();
  if ((*entry)->status.model != nullptr) return (*entry)->status.model;
  return absl::InvalidArgumentError(absl::StrCat(
      "model ", Quote(name), " is an attention module, which attendant.v1.Attention serves"));
}

absl::StatusOr<AttentionModel*> ModelRegistry::FindAttention(absl::string_view name) const {
  absl::ReaderMutexLock lock(&impl_->mutex);
  const absl::StatusOr<const Impl::Entry*> entry = impl_->RequireEntry(name);
  if (!entry.ok()) return entry.status();
  if ((*entry)->status.attention != nullptr) return (*entry)->status.attention;
  return absl::InvalidArgumentError(
      absl::StrCat("model ", Quote(name), " is an encoder, which attendant.v1.Encoder serves"));
}

bool ModelRegistry::Knows(absl::string_view name) const {
  absl::ReaderMutexLock lock(&impl_->mutex);
  return impl_->FindEntry(name) != nullptr;
}

std::vector<ModelStatus> ModelRegistry::List() const {
  absl::ReaderMutexLock lock(&impl_->mutex);
  std::vector<ModelStatus> list;
  for (const Impl::Entry& entry : impl_->entries) {
    if (!entry.built_in) list.push_back(entry.status);
  }
  return list;
}

absl::Status ModelRegistry::Ready() const {
  absl::ReaderMutexLock lock(&impl_->mutex);
  bool any = false;
  for (const Impl::Entry& entry : impl_->entries) {
    if (absl::Status status = Unavailable(entry.status); !status.ok()) return status;
    any |= !entry.built_in;
  }
  return any ? absl::OkStatus() : absl::UnavailableError("no model was given yet");
}

void ModelRegistry::Drain(absl::Time deadline) {
  for (AnyModel* model : impl_->StartDraining()) model->batcher->Drain(deadline);
}

}  // namespace attendant
