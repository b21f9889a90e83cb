// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/model_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/models/registry/model_health.h"

namespace attendant {
namespace {

absl::Status NoEncoder(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat(
      "model ", Quote(name), " is an attention module, which attendant.v1.Attention serves"));
}

// The devices that hold a part of the model; empty for the CPU.
std::vector<int> DevicesOf(ServableModel& model) {
  std::vector<int> devices;
  const EncoderModel* const encoder = model.AsEncoder();
  if (encoder == nullptr) return devices;
  for (const DeviceUse& use : encoder->encoder->device_use()) devices.push_back(use.device);
  return devices;
}

}  // namespace

ModelRegistry::ModelRegistry(ModelLoader loader, ServerMetrics& metrics, Executor executor,
                             RegistryOptions options)
    : load_(std::move(loader)),
      metrics_(metrics),
      executor_(std::move(executor)),
      options_(std::move(options)),
      idle_(options_) {}

ModelRegistry::~ModelRegistry() {
  // A request shares in the model whose queue holds it: it must end for the model to be freed.
  Drain(absl::InfinitePast());
  if (loading_.joinable()) loading_.join();
  // The answer of a request, or the loss of a device, may still be on its way on a worker of a
  // model. The last share must not end there: the model's end waits for its workers.
  {
    absl::MutexLock lock(&mutex_);
    TableChange change = table_.Clear();
    GiveUp(change);
  }
  reaper_.AwaitGivenUp("", SteadyNow() + ModelReaper::kEndTime);
}

void ModelRegistry::SetListener(Listener listener) { listener_ = std::move(listener); }

void ModelRegistry::SetModels(std::vector<ModelSource> sources, std::vector<ModelSource> unloaded) {
  // Its series are there even when the load fails.
  for (const ModelSource& source : sources) metrics_.ForModel(source.name);
  absl::MutexLock lock(&mutex_);
  for (const ModelSource& source : sources) table_.AddAtStart(source);
  for (const ModelSource& source : unloaded) table_.AddUnloaded(source);
  given_ = std::move(sources);
}

void ModelRegistry::AddBuiltIn(std::unique_ptr<ServableModel> model) {
  absl::MutexLock lock(&mutex_);
  table_.AddBuiltIn(reaper_.Share(std::move(model)));
}

void ModelRegistry::StartLoading() {
  {
    absl::MutexLock lock(&mutex_);
    for (const ModelEntry& entry : table_.entries()) {
      if (!entry.at_start) continue;
      jobs_.AddAtStart({.kind = LoadJob::Kind::kLoad, .name = entry.status.name});
    }
  }
  loading_ = std::thread([this] { Work(); });
}

absl::StatusOr<std::shared_ptr<ServableModel>> ModelRegistry::FindReady(
    absl::string_view name, absl::string_view version) const {
  absl::ReaderMutexLock lock(&mutex_);
  const absl::Time now = SteadyNow();
  ATTENDANT_ASSIGN_OR_RETURN(const ModelEntry* entry, table_.Choose(name, version, now));
  ATTENDANT_RETURN_IF_ERROR(entry->Unavailable(now));
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
  const absl::Time now = SteadyNow();
  ATTENDANT_ASSIGN_OR_RETURN(const ModelEntry* entry, table_.Choose(name, version, now));
  if (!entry->status.Serves()) return entry->Unavailable(now);
  if (entry->status.is_module) return NoEncoder(name);
  return entry->status;
}

bool ModelRegistry::NeedsLoad(absl::string_view name, absl::string_view version) const {
  if (!any_idle_.load(std::memory_order_relaxed)) return false;
  absl::ReaderMutexLock lock(&mutex_);
  const absl::Time now = SteadyNow();
  const absl::StatusOr<const ModelEntry*> entry = table_.Choose(name, version, now);
  return entry.ok() && (*entry)->NeedsLoad(now);
}

std::vector<ModelStatus> ModelRegistry::List() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<ModelStatus> list;
  for (const ModelEntry& entry : table_.entries()) {
    if (!entry.built_in) list.push_back(entry.status);
  }
  return list;
}

absl::Status ModelRegistry::Ready() const {
  absl::ReaderMutexLock lock(&mutex_);
  if (drain_announced_) return StoppingError();
  return CheckReady(table_.entries(), options_, SteadyNow());
}

absl::Status ModelRegistry::Live() const {
  absl::ReaderMutexLock lock(&mutex_);
  return CheckLive(table_.entries(), SteadyNow());
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

std::vector<int64_t> ModelRegistry::GiveUp(TableChange& change) {
  std::vector<int64_t> ids;
  for (std::shared_ptr<ServableModel>& model : change.given_up) {
    ids.push_back(model->life_id);
    reaper_.GiveUp(std::move(model));
  }
  change.given_up.clear();
  any_idle_ = table_.AnyIdle();
  return ids;
}

void ModelRegistry::Notify(const TableChange& change, ModelNews news) const {
  if (!listener_) return;
  for (const ModelStatus& status : change.changed) listener_(status, news);
}

void ModelRegistry::UncountLoaded(const TableChange& change) {
  for (const ModelStatus& status : change.changed) {
    const std::shared_ptr<ModelMetrics> series = metrics_.FindModel(status.name);
    if (!table_.AnyServes(status.name) && series != nullptr) series->SetNotLoaded();
  }
}

void ModelRegistry::Lose(ServableModel& model, const absl::Status& why) {
  const ModelTable::Models others = OthersOnDevicesOf(model);
  TableChange change;
  {
    absl::MutexLock lock(&mutex_);
    change = table_.Lose(&model, why);
    for (const std::shared_ptr<ServableModel>& other : others) {
      for (ModelStatus& lost : table_.Lose(other.get(), why).changed) {
        change.changed.push_back(std::move(lost));
      }
    }
    UncountLoaded(change);
  }
  Notify(change);
}

// Without a share of the model itself: its worker, which calls, must not have the last one.
ModelTable::Models ModelRegistry::OthersOnDevicesOf(ServableModel& model) const {
  const std::vector<int> devices = DevicesOf(model);
  ModelTable::Models others;
  if (devices.empty()) return others;
  {
    absl::ReaderMutexLock lock(&mutex_);
    for (const ModelEntry& entry : table_.entries()) {
      const std::shared_ptr<ServableModel>& other = entry.status.model;
      if (other != nullptr && other.get() != &model) others.push_back(other);
    }
  }
  std::erase_if(others, [&devices](const std::shared_ptr<ServableModel>& other) {
    return DevicesOf(*other) != devices;
  });
  return others;
}

void ModelRegistry::SetStalled(const ServableModel* model, int workers) {
  TableChange change;
  {
    absl::MutexLock lock(&mutex_);
    change = table_.SetStalled(model, workers);
  }
  Notify(change, ModelNews::kStall);
}

void ModelRegistry::Drain(absl::Time deadline) {
  for (const auto& model : StartDraining()) model->batcher->Drain(deadline);
}

ModelTable::Models ModelRegistry::StartDraining() {
  ModelTable::Models models;  // given up ones too: their requests are not answered yet
  TableChange change;
  std::vector<Done> unanswered;  // of loads that wait or run
  {
    absl::MutexLock lock(&mutex_);
    models = reaper_.GivenUp();
    for (auto& model : table_.LoadedModels()) models.push_back(std::move(model));
    change = table_.StartDraining();
    unanswered = jobs_.Close();
    work_.SignalAll();
  }
  for (Done& done : unanswered) done(StoppingError());
  Notify(change);
  return models;
}

}  // namespace attendant
