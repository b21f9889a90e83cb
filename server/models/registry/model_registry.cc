// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/model_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/retry/retry_hint.h"

namespace attendant {
namespace {

// Why the model does not take requests; OK when it does.
std::string Reason(const ModelStatus& status) {
  switch (status.state) {
    case ModelState::kReady:
      return "";
    case ModelState::kLoading:
      return " is loading";
    case ModelState::kUnloaded:
      return " is not loaded";
    case ModelState::kUnloading:
      return " is being unloaded";
    case ModelState::kDraining:
      return " is draining: the server is stopping";
    case ModelState::kIdle:
      if (status.error.ok()) return " is idle: a request loads it";
      [[fallthrough]];
    case ModelState::kIdleFailed:
      return absl::StrCat(" is idle, and the last load failed: ", status.error.message());
    case ModelState::kLost:
      return absl::StrCat(" has lost what it computed on: ", status.error.message());
    case ModelState::kFailed:
      break;
  }
  return absl::StrCat(" failed to load: ", status.error.message());
}

absl::Status NoEncoder(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat(
      "model ", Quote(name), " is an attention module, which attendant.v1.Attention serves"));
}

absl::Status Stalled(const ModelStatus& status) {
  return absl::UnavailableError(absl::StrCat("model '", status.name,
                                             "' has stalled: ", status.stalled_workers,
                                             " workers do not end their batches"));
}

}  // namespace

ModelRegistry::ModelRegistry(ModelLoader loader, ServerMetrics& metrics, Executor executor,
                             RegistryOptions options)
    : load_(std::move(loader)),
      metrics_(metrics),
      executor_(std::move(executor)),
      options_(std::move(options)) {}

ModelRegistry::~ModelRegistry() {
  // A request shares in the model whose queue holds it: it must end for the model to be freed.
  Drain(absl::InfinitePast());
  if (loading_.joinable()) loading_.join();
  // The answer of a request, or the loss of a device, may still be on its way on a worker of a
  // model. The last share must not end there: the model's end waits for its workers.
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& entry : entries_) GiveUp(*entry);
    entries_.clear();
  }
  reaper_.AwaitGivenUp("", SteadyNow() + ModelReaper::kEndTime);
}

void ModelRegistry::SetListener(Listener listener) { listener_ = std::move(listener); }

void ModelRegistry::SetModels(std::vector<ModelSource> sources, std::vector<ModelSource> unloaded) {
  // Its series are there even when the load fails.
  for (const ModelSource& source : sources) metrics_.ForModel(source.name);
  absl::MutexLock lock(&mutex_);
  for (const ModelSource& source : sources) {
    AddEntry(source, ModelState::kLoading).at_start = true;
  }
  for (const ModelSource& source : unloaded) AddEntry(source, ModelState::kUnloaded);
  given_ = std::move(sources);
}

void ModelRegistry::AddBuiltIn(std::unique_ptr<ServableModel> model) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = AddEntry({.name = model->name, .directory = ""}, ModelState::kReady);
  entry.built_in = true;
  entry.SetModel(reaper_.Share(std::move(model)));
}

void ModelRegistry::StartLoading() {
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& entry : entries_) {
      if (!entry->at_start) continue;
      jobs_.AddAtStart({.kind = LoadJob::Kind::kLoad, .name = entry->status.name});
    }
  }
  loading_ = std::thread([this] { Work(); });
}

void ModelRegistry::Entry::SetModel(std::shared_ptr<ServableModel> loaded) {
  status.model = std::move(loaded);
  status.state = ModelState::kReady;
  status.error = absl::OkStatus();
  status.stalled_workers = 0;
  next_try = absl::InfinitePast();
  retry_pause = absl::ZeroDuration();
  at_start = false;
  status.facts.reset();
  status.info.reset();
  status.module.reset();
  if (const EncoderModel* const encoder = status.encoder()) {
    status.facts = encoder->Facts();
    status.info = std::make_shared<const EncoderInfo>(encoder->Info());
  }
  const AttentionModel* const attention = status.attention();
  status.is_module = attention != nullptr;
  if (status.is_module && attention->module != nullptr) {
    status.module = {.config = attention->module->config(), .dtype = attention->module->dtype()};
  }
}

int ModelRegistry::Entry::Rank() const {
  if (status.Serves() && next_try <= SteadyNow()) return 2;
  return status.IsIdle() ? 1 : 0;
}

absl::Status ModelRegistry::Entry::Unavailable() const {
  if (status.state == ModelState::kReady) return absl::OkStatus();
  absl::Status error =
      absl::UnavailableError(absl::StrCat("model '", status.name, "'", Reason(status)));
  if (status.IsIdle()) SetRetryAfter(error, std::max(absl::Seconds(1), next_try - SteadyNow()));
  return error;
}

ModelRegistry::Entry* ModelRegistry::FindEntry(absl::string_view name, int64_t version) const {
  for (const auto& entry : entries_) {
    if (entry->status.name == name && entry->status.version == version) return entry.get();
  }
  return nullptr;
}

ModelRegistry::Entry* ModelRegistry::FindEntry(const ServableModel* model) const {
  for (const auto& entry : entries_) {
    if (entry->status.model.get() == model) return entry.get();
  }
  return nullptr;
}

ModelRegistry::Entry& ModelRegistry::AddEntry(const ModelSource& source, ModelState state) {
  auto place = entries_.end();
  for (auto other = entries_.begin(); other != entries_.end(); ++other) {
    const ModelStatus& status = (*other)->status;
    if (status.name != source.name) continue;
    place = status.version < source.version ? other + 1 : other;
    if (status.version > source.version) break;
  }
  auto entry = std::make_unique<Entry>();
  entry->source = source;
  entry->status.name = source.name;
  entry->status.version = source.version;
  entry->status.state = state;
  return **entries_.insert(place, std::move(entry));
}

absl::StatusOr<const ModelRegistry::Entry*> ModelRegistry::Choose(absl::string_view name,
                                                                  absl::string_view version) const {
  const Entry* best = nullptr;
  std::vector<int64_t> versions;
  for (const auto& entry : entries_) {
    if (entry->status.name != name) continue;
    versions.push_back(entry->status.version);
    if (!version.empty()) {
      if (version == absl::StrCat(entry->status.version)) return entry.get();
    } else if (best == nullptr || entry->Rank() >= best->Rank()) {
      best = entry.get();
    }
  }
  if (best != nullptr) return best;
  if (versions.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no model ", Quote(name)));
  }
  return absl::NotFoundError(absl::StrCat("model ", Quote(name), " has no version ", Quote(version),
                                          ", only ", absl::StrJoin(versions, ", ")));
}

absl::StatusOr<std::shared_ptr<ServableModel>> ModelRegistry::FindReady(
    absl::string_view name, absl::string_view version) const {
  absl::ReaderMutexLock lock(&mutex_);
  ATTENDANT_ASSIGN_OR_RETURN(const Entry* entry, Choose(name, version));
  ATTENDANT_RETURN_IF_ERROR(entry->Unavailable());
  return entry->status.model;
}

absl::StatusOr<std::shared_ptr<EncoderModel>> ModelRegistry::Find(absl::string_view name,
                                                                  absl::string_view version) const {
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<ServableModel> model, FindReady(name, version));
  EncoderModel* const encoder = model->AsEncoder();
  if (encoder != nullptr) return std::shared_ptr<EncoderModel>(std::move(model), encoder);
  return NoEncoder(name);
}

absl::StatusOr<std::shared_ptr<AttentionModel>> ModelRegistry::FindAttention(
    absl::string_view name) const {
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<ServableModel> model, FindReady(name, ""));
  AttentionModel* const attention = model->AsAttention();
  if (attention != nullptr) return std::shared_ptr<AttentionModel>(std::move(model), attention);
  return absl::InvalidArgumentError(
      absl::StrCat("model ", Quote(name), " is an encoder, which attendant.v1.Encoder serves"));
}

absl::StatusOr<ModelStatus> ModelRegistry::Describe(absl::string_view name,
                                                    absl::string_view version) const {
  absl::ReaderMutexLock lock(&mutex_);
  ATTENDANT_ASSIGN_OR_RETURN(const Entry* entry, Choose(name, version));
  if (!entry->status.Serves()) return entry->Unavailable();
  if (entry->status.is_module) return NoEncoder(name);
  return entry->status;
}

std::vector<ModelStatus> ModelRegistry::List() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<ModelStatus> list;
  for (const auto& entry : entries_) {
    if (!entry->built_in) list.push_back(entry->status);
  }
  return list;
}

absl::Status ModelRegistry::Ready() const {
  absl::ReaderMutexLock lock(&mutex_);
  if (drain_announced_) return StoppingError();
  absl::Status failure;  // of a model
  bool any = false;
  for (const auto& entry : entries_) {
    const ModelStatus& status = entry->status;
    if (status.stalled_workers > 0) return Stalled(status);
    if (status.Serves()) {
      any |= !entry->built_in;
    } else if (entry->at_start || status.state == ModelState::kDraining) {
      return entry->Unavailable();
    } else if (!status.error.ok()) {  // it has failed, or is loaded anew after that
      failure = entry->Unavailable();
      if (options_.readiness == Readiness::kEveryModel) return failure;
    }
  }
  if (any) return absl::OkStatus();
  if (failure.ok() && options_.control != ModelControl::kExplicit) {
    return absl::UnavailableError("no model is there yet");
  }
  return failure;
}

absl::Status ModelRegistry::Live() const {
  absl::ReaderMutexLock lock(&mutex_);
  absl::Status loss;
  for (const auto& entry : entries_) {
    if (entry->built_in) continue;
    const ModelStatus& status = entry->status;
    if (!status.HasFailed() && status.state != ModelState::kUnloaded) return absl::OkStatus();
    if (status.state == ModelState::kLost) loss = entry->Unavailable();
  }
  return loss;
}

absl::Status ModelRegistry::CheckControl() const {
  if (options_.control == ModelControl::kExplicit) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("explicit model load / unload is not allowed: the server runs with "
                   "--model_control=",
                   options_.control == ModelControl::kPoll ? "poll" : "none"));
}

void ModelRegistry::AnnounceDrain() {
  absl::MutexLock lock(&mutex_);
  drain_announced_ = true;
}

void ModelRegistry::Notify(const ModelStatus& status, ModelNews news) const {
  if (listener_) listener_(status, news);
}

void ModelRegistry::Lose(const ServableModel* model, const absl::Status& why) {
  ModelStatus status;
  {
    absl::MutexLock lock(&mutex_);
    Entry* const entry = FindEntry(model);
    if (entry == nullptr || entry->status.state != ModelState::kReady) return;  // it is given up
    entry->status.state = ModelState::kLost;
    entry->status.error = why;
    status = entry->status;
    UncountLoaded(status.name);
  }
  Notify(status);
}

void ModelRegistry::UncountLoaded(const std::string& name) {
  const bool serves = std::any_of(entries_.begin(), entries_.end(), [&name](const auto& entry) {
    return entry->status.name == name && entry->status.Serves();
  });
  const std::shared_ptr<ModelMetrics> series = metrics_.FindModel(name);
  if (!serves && series != nullptr) series->SetNotLoaded();
}

void ModelRegistry::SetStalled(const ServableModel* model, int workers) {
  ModelStatus status;
  {
    absl::MutexLock lock(&mutex_);
    Entry* const entry = FindEntry(model);
    if (entry == nullptr || draining_) return;
    entry->status.stalled_workers = workers;
    status = entry->status;
  }
  Notify(status, ModelNews::kStall);
}

void ModelRegistry::Drain(absl::Time deadline) {
  for (const auto& model : StartDraining()) model->batcher->Drain(deadline);
}

ModelRegistry::Models ModelRegistry::StartDraining() {
  Models models;  // given up ones too: their requests are not answered yet
  std::vector<ModelStatus> changed;
  std::vector<Done> unanswered;  // of loads that wait or run
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    work_.SignalAll();
    models = reaper_.GivenUp();
    unanswered = jobs_.Close();
    for (const auto& entry : entries_) {
      ModelStatus& status = entry->status;
      if (status.model != nullptr) models.push_back(status.model);
      if (status.HasFailed() || status.state == ModelState::kUnloaded) continue;
      if (status.state == ModelState::kDraining) continue;
      status.state = ModelState::kDraining;
      if (!entry->built_in) changed.push_back(status);
    }
  }
  for (Done& done : unanswered) done(StoppingError());
  for (const ModelStatus& status : changed) Notify(status);
  return models;
}

}  // namespace attendant
