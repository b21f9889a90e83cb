// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

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

absl::Status Stalled(const ModelStatus& status) {
  return absl::UnavailableError(absl::StrCat("model '", status.name,
                                             "' has stalled: ", status.stalled_workers,
                                             " workers do not end their batches"));
}

}  // namespace

ModelRegistry::ModelRegistry(ModelLoader loader, ServerMetrics& metrics, Executor executor,
                             Readiness readiness)
    : load_(std::move(loader)),
      metrics_(metrics),
      executor_(std::move(executor)),
      readiness_(readiness) {}

ModelRegistry::~ModelRegistry() {
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
  }
  if (loading_.joinable()) loading_.join();
}

void ModelRegistry::SetListener(Listener listener) { listener_ = std::move(listener); }

void ModelRegistry::SetModels(std::vector<ModelSource> sources) {
  absl::MutexLock lock(&mutex_);
  for (ModelSource& source : sources) {
    Entry entry;
    entry.status.name = source.name;
    entry.source = std::move(source);
    entries_.push_back(std::move(entry));
  }
}

void ModelRegistry::AddBuiltIn(std::unique_ptr<ServableModel> model) {
  absl::MutexLock lock(&mutex_);
  Entry entry;
  entry.status.name = model->name;
  entry.built_in = true;
  entry.SetModel(std::move(model));
  entries_.push_back(std::move(entry));
}

void ModelRegistry::StartLoading() {
  loading_ = std::thread([this] { LoadAll(); });
}

void ModelRegistry::Entry::SetModel(std::unique_ptr<ServableModel> loaded) {
  model = std::move(loaded);
  status.model = model.get();
  status.state = ModelState::kReady;
}

const ModelRegistry::Entry* ModelRegistry::FindEntry(absl::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.status.name == name) return &entry;
  }
  return nullptr;
}

absl::StatusOr<ServableModel*> ModelRegistry::FindReady(absl::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  const Entry* entry = FindEntry(name);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no model ", Quote(name)));
  }
  ATTENDANT_RETURN_IF_ERROR(Unavailable(entry->status));
  return entry->status.model;
}

absl::StatusOr<EncoderModel*> ModelRegistry::Find(absl::string_view name) const {
  ATTENDANT_ASSIGN_OR_RETURN(ServableModel * model, FindReady(name));
  if (EncoderModel* encoder = model->AsEncoder()) return encoder;
  return absl::InvalidArgumentError(absl::StrCat(
      "model ", Quote(name), " is an attention module, which attendant.v1.Attention serves"));
}

absl::StatusOr<AttentionModel*> ModelRegistry::FindAttention(absl::string_view name) const {
  ATTENDANT_ASSIGN_OR_RETURN(ServableModel * model, FindReady(name));
  if (AttentionModel* attention = model->AsAttention()) return attention;
  return absl::InvalidArgumentError(
      absl::StrCat("model ", Quote(name), " is an encoder, which attendant.v1.Encoder serves"));
}

bool ModelRegistry::Contains(absl::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  return FindEntry(name) != nullptr;
}

std::vector<ModelStatus> ModelRegistry::List() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<ModelStatus> list;
  for (const Entry& entry : entries_) {
    if (!entry.built_in) list.push_back(entry.status);
  }
  return list;
}

absl::Status ModelRegistry::Ready() const {
  absl::ReaderMutexLock lock(&mutex_);
  if (drain_announced_) return absl::UnavailableError("the server is stopping");
  absl::Status failure = absl::UnavailableError("no model was given yet");
  bool any = false;
  for (const Entry& entry : entries_) {
    if (entry.status.stalled_workers > 0) return Stalled(entry.status);
    const absl::Status status = Unavailable(entry.status);
    if (status.ok()) {
      any |= !entry.built_in;
    } else if (readiness_ == Readiness::kEveryModel || !entry.status.HasFailed()) {
      return status;
    } else {
      failure = status;
    }
  }
  return any ? absl::OkStatus() : failure;
}

void ModelRegistry::AnnounceDrain() {
  absl::MutexLock lock(&mutex_);
  drain_announced_ = true;
}

void ModelRegistry::Drain(absl::Time deadline) {
  for (ServableModel* model : StartDraining()) model->batcher->Drain(deadline);
}

void ModelRegistry::Notify(const std::string& name, ModelState state) const {
  if (listener_) listener_(name, state);
}

void ModelRegistry::LoadAll() {
  for (size_t i = 0;; ++i) {
    ModelSource source;
    {
      absl::MutexLock lock(&mutex_);
      if (draining_ || i == entries_.size()) return;
      if (entries_[i].built_in) continue;
      source = entries_[i].source;
    }
    EndLoad(i, load_(source, metrics_, executor_));
  }
}

void ModelRegistry::EndLoad(size_t index, absl::StatusOr<std::unique_ptr<ServableModel>> model) {
  ModelStatus status;
  {
    absl::MutexLock lock(&mutex_);
    if (draining_) return;
    Entry& entry = entries_[index];
    if (model.ok()) {
      entry.SetModel(*std::move(model));
    } else {
      entry.status.state = ModelState::kFailed;
      entry.status.error = model.status();
    }
    status = entry.status;
  }
  Notify(status.name, status.state);
  if (status.model == nullptr) return;
  Batcher& batcher = *status.model->batcher;
  batcher.SetLostListener([this, index](const absl::Status& why) { Lose(index, why); });
  batcher.SetStallListener([this, index](int workers) { SetStalled(index, workers); });
}

void ModelRegistry::Lose(size_t index, const absl::Status& why) {
  std::string name;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[index];
    if (entry.status.state != ModelState::kReady) return;  // it is draining
    entry.status.state = ModelState::kLost;
    entry.status.error = why;
    name = entry.status.name;
  }
  Notify(name, ModelState::kLost);
}

void ModelRegistry::SetStalled(size_t index, int workers) {
  std::string name;
  ModelState state;
  {
    absl::MutexLock lock(&mutex_);
    if (draining_) return;
    ModelStatus& status = entries_[index].status;
    status.stalled_workers = workers;
    status.has_stalled = true;
    name = status.name;
    state = status.state;
  }
  Notify(name, state);
}

std::vector<ServableModel*> ModelRegistry::StartDraining() {
  std::vector<ServableModel*> models;
  std::vector<std::string> changed;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    for (Entry& entry : entries_) {
      if (!entry.status.error.ok()) continue;  // it failed or is lost
      entry.status.state = ModelState::kDraining;
      if (!entry.built_in) changed.push_back(entry.status.name);
      if (entry.model) models.push_back(entry.model.get());
    }
  }
  for (const std::string& name : changed) Notify(name, ModelState::kDraining);
  return models;
}

}  // namespace attendant
