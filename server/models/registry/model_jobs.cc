// SPDX-License-Identifier: Apache-2.0
// The loading thread of the registry: loads, replaces and unloads models, one after the other.
#include <pthread.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/models/model_name.h"
#include "server/models/registry/model_registry.h"
#include "server/text/unicode/readable.h"

namespace attendant {
namespace {

constexpr size_t kMaxErrorBytes = 1024;

// Fit for clients and the log: errors of loads quote files, which may hold anything.
absl::Status WithReadableMessage(const absl::Status& error) {
  return absl::Status(error.code(), Readable(error.message(), kMaxErrorBytes));
}

absl::Status NoModel(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no model ", Quote(name)));
}

void SetFailed(const std::vector<ModelStatus>& models, const std::string& name,
               ServerMetrics& metrics) {
  const std::shared_ptr<ModelMetrics> series = metrics.FindModel(name);
  if (series != nullptr) series->SetFailed(AnyLoadFailed(models, name));
}

}  // namespace

void ModelRegistry::Load(const std::string& name, Done done) {
  AddJob({.kind = LoadJob::Kind::kLoad, .name = name}, std::move(done));
}

void ModelRegistry::Unload(const std::string& name, Done done) {
  AddJob({.kind = LoadJob::Kind::kUnload, .name = name}, std::move(done));
}

void ModelRegistry::LoadIdle(const std::string& name, Done then) {
  AddJob({.kind = LoadJob::Kind::kLoadIdle, .name = name}, std::move(then));
}

absl::Status ModelRegistry::StartLoad(const std::string& name, Done done) {
  return TryAddJob({.kind = LoadJob::Kind::kLoad, .name = name}, done);
}

absl::Status ModelRegistry::StartUnload(const std::string& name, Done done) {
  return TryAddJob({.kind = LoadJob::Kind::kUnload, .name = name}, done);
}

void ModelRegistry::AddJob(LoadJob job, Done done) {
  const absl::Status status = TryAddJob(std::move(job), done);
  if (done != nullptr) done(status);
}

// The load of an idle model has nothing to wait for when its model was loaded since it was looked
// at.
absl::Status ModelRegistry::TryAddJob(LoadJob job, Done& done) {
  ATTENDANT_RETURN_IF_ERROR(CheckModelName(job.name));
  absl::MutexLock lock(&mutex_);
  if (jobs_.closed()) return StoppingError();
  if (job.kind == LoadJob::Kind::kLoadIdle && !table_.AnyNeedsLoad(job.name, SteadyNow())) {
    return absl::OkStatus();
  }
  ATTENDANT_RETURN_IF_ERROR(jobs_.Add(std::move(job), done));
  work_.Signal();
  return absl::OkStatus();
}

void ModelRegistry::Work() {
  pthread_setname_np(pthread_self(), "models");
  while (AwaitWork()) {
    UnloadIdle();
    if (const std::optional<LoadJob> job = TakeJob()) Run(*job);
  }
}

bool ModelRegistry::AwaitWork() {
  absl::MutexLock lock(&mutex_);
  while (!jobs_.closed() && jobs_.empty()) {
    const absl::Time now = SteadyNow();
    const absl::Time next = idle_.NextTime(table_.entries(), now);
    if (next <= now) break;
    work_.WaitUntil(mutex_, next);
  }
  return !jobs_.closed();
}

std::optional<LoadJob> ModelRegistry::TakeJob() {
  absl::MutexLock lock(&mutex_);
  if (std::optional<LoadJob> job = jobs_.Begin()) return job;
  const ModelEntry* const retry = IdlePolicy::DueRetry(table_.entries(), SteadyNow());
  if (retry == nullptr) return std::nullopt;
  return LoadJob{.kind = LoadJob::Kind::kRetry, .name = retry->status.name};
}

void ModelRegistry::Run(const LoadJob& job) {
  absl::Status status;
  switch (job.kind) {
    case LoadJob::Kind::kLoad:
      status = RunLoad(job.name);
      break;
    case LoadJob::Kind::kUnload:
      status = RunUnload(job.name);
      break;
    case LoadJob::Kind::kLoadIdle:
    case LoadJob::Kind::kRetry:
      RunLoadIdle(job.name, /*only_failed=*/job.kind == LoadJob::Kind::kRetry);
      break;
  }
  SetFailed(List(), job.name, metrics_);
  for (Done& done : TakeRunning()) done(status);
  // The requests that came meanwhile do not wait for the loads of other models.
  for (Done& done : TakeIdleLoads(job.name)) done(absl::OkStatus());
  // So that the next load finds the memory of what this one has replaced. Its requests go on.
  if (job.kind != LoadJob::Kind::kUnload) AwaitGivenUp(job.name);
}

std::vector<ModelRegistry::Done> ModelRegistry::TakeRunning() {
  absl::MutexLock lock(&mutex_);
  return jobs_.End();
}

std::vector<ModelRegistry::Done> ModelRegistry::TakeIdleLoads(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (table_.AnyNeedsLoad(name, SteadyNow())) return {};
  return jobs_.Remove({.kind = LoadJob::Kind::kLoadIdle, .name = name});
}

absl::StatusOr<std::vector<ModelSource>> ModelRegistry::FindSources(const std::string& name) const {
  if (options_.find) return options_.find(name);
  std::vector<ModelSource> sources;
  absl::ReaderMutexLock lock(&mutex_);
  for (const ModelSource& source : given_) {
    if (source.name == name) sources.push_back(source);
  }
  if (sources.empty()) return NoModel(name);
  return sources;
}

absl::Status ModelRegistry::RunLoad(const std::string& name) {
  absl::StatusOr<std::vector<ModelSource>> sources = FindSources(name);
  if (!sources.ok()) {
    // What was to be loaded at the start has failed; what serves stays, and what is idle: a request
    // loads it from where it was.
    FailLoads(name, sources.status(),
              [](const ModelEntry& entry) { return !entry.built_in && !entry.status.IsIdle(); });
    return sources.status();
  }
  absl::Status status;
  for (const ModelSource& source : *sources) {
    if (IsCurrent(source)) {
      KeepModel(source);
    } else {
      status.Update(LoadVersion(source));
    }
  }
  if (status.ok()) {
    RemoveOthers(name, *sources);
  } else {
    // Nothing else would end the first load of a version that is not among the sources.
    FailLoads(name,
              absl::Status(status.code(),
                           absl::StrCat("another version has taken its place, and did not load: ",
                                        status.message())),
              [](const ModelEntry& entry) { return entry.at_start; });
  }
  return status;
}

void ModelRegistry::FailLoads(const std::string& name, const absl::Status& why,
                              absl::FunctionRef<bool(const ModelEntry&)> is_meant) {
  std::vector<ModelSource> failed;
  {
    absl::ReaderMutexLock lock(&mutex_);
    failed = table_.Sources(name, is_meant);
  }
  for (const ModelSource& source : failed) FailLoad(source, why).IgnoreError();
}

void ModelRegistry::RunLoadIdle(const std::string& name, bool only_failed) {
  std::vector<ModelSource> sources;
  {
    absl::ReaderMutexLock lock(&mutex_);
    sources = table_.Sources(name, [only_failed, now = SteadyNow()](const ModelEntry& entry) {
      if (only_failed && entry.status.state != ModelState::kIdleFailed) return false;
      return entry.NeedsLoad(now);
    });
  }
  for (const ModelSource& source : sources) LoadVersion(source).IgnoreError();
}

void ModelRegistry::UnloadIdle() {
  TableChange change;
  std::vector<int64_t> given_up;
  {
    absl::MutexLock lock(&mutex_);  // while it is held, nobody can begin to share in a model
    change = table_.UnloadIdle(idle_.IdleModels(table_.entries(), SteadyNow()));
    given_up = GiveUp(change);
  }
  Notify(change);
  for (const ModelStatus& idle : change.changed) SetFailed(List(), idle.name, metrics_);
  // So that the next load finds their memory.
  reaper_.AwaitFreed(given_up, SteadyNow() + ModelReaper::kEndTime);
}

std::string ModelRegistry::Fingerprint(const ModelSource& source) const {
  return options_.fingerprint ? options_.fingerprint(source) : "";
}

// A client that loads an idle model wants it loaded. A change in the repository loads no version
// that nobody asks for.
bool ModelRegistry::IsCurrent(const ModelSource& source) const {
  const std::string found = Fingerprint(source);
  absl::ReaderMutexLock lock(&mutex_);
  const ModelEntry* const entry = table_.Find(source.name, source.version);
  if (entry == nullptr || found.empty() || entry->fingerprint != found) return false;
  const ModelStatus& status = entry->status;
  if (status.IsIdle()) return options_.control == ModelControl::kPoll;
  return status.state == ModelState::kReady && !entry->load_owed && status.stalled_workers == 0;
}

void ModelRegistry::KeepModel(const ModelSource& source) {
  TableChange change;
  {
    absl::MutexLock lock(&mutex_);
    change = table_.KeepModel(source);
  }
  Notify(change);
}

absl::Status ModelRegistry::LoadVersion(const ModelSource& source) {
  ATTENDANT_RETURN_IF_ERROR(BeginLoad(source));
  const std::string fingerprint = Fingerprint(source);  // a change during the load is a later one
  absl::StatusOr<std::unique_ptr<ServableModel>> loaded = load_(source, metrics_, executor_);
  if (!loaded.ok()) return FailLoad(source, loaded.status());
  return EndLoad(source, fingerprint, *std::move(loaded));
}

absl::Status ModelRegistry::BeginLoad(const ModelSource& source) {
  metrics_.ForModel(source.name);  // its series are there even when the load fails
  TableChange change;
  {
    absl::MutexLock lock(&mutex_);
    if (table_.draining()) return StoppingError();
    change = table_.BeginLoad(source);
  }
  Notify(change);
  return absl::OkStatus();
}

absl::Status ModelRegistry::EndLoad(const ModelSource& source, const std::string& fingerprint,
                                    std::unique_ptr<ServableModel> loaded) {
  const std::shared_ptr<ServableModel> model = reaper_.Share(std::move(loaded));
  TableChange change;
  {
    absl::MutexLock lock(&mutex_);
    model->Touch();  // its load is no time without requests
    change = table_.EndLoad(source, fingerprint, model);
    if (change.changed.empty()) return StoppingError();
    GiveUp(change);
  }
  model->metrics->SetLoaded(model->LoadInfo());
  Notify(change);
  ServableModel* const key = model.get();
  model->batcher->SetLostListener([this, key](const absl::Status& why) { Lose(*key, why); });
  model->batcher->SetStallListener([this, key](int workers) { SetStalled(key, workers); });
  return absl::OkStatus();
}

absl::Status ModelRegistry::FailLoad(const ModelSource& source, const absl::Status& why) {
  const absl::Status failure = WithReadableMessage(why);
  TableChange change;
  {
    absl::MutexLock lock(&mutex_);
    change = table_.FailLoad(source, failure, idle_, SteadyNow());
    if (change.changed.empty()) return StoppingError();
    GiveUp(change);
    UncountLoaded(change);
  }
  Notify(change);
  return failure;
}

void ModelRegistry::RemoveOthers(const std::string& name, const std::vector<ModelSource>& kept) {
  TableChange change;
  {
    absl::MutexLock lock(&mutex_);
    change = table_.RemoveOthers(name, kept);
    GiveUp(change);
  }
  Notify(change);
}

bool ModelRegistry::SetUnloaded(const std::string& name, ModelState state) {
  TableChange change;
  {
    absl::MutexLock lock(&mutex_);
    change = table_.Unload(name, state);
    GiveUp(change);
  }
  Notify(change);
  return !change.changed.empty();
}

absl::Status ModelRegistry::RunUnload(const std::string& name) {
  if (!SetUnloaded(name, ModelState::kUnloading)) return NoModel(name);
  if (!AwaitGivenUp(name)) reaper_.End(name);
  metrics_.RemoveModel(name);
  if (absl::IsNotFound(FindSources(name).status())) {
    RemoveOthers(name, {});
  } else {
    SetUnloaded(name, ModelState::kUnloaded);
  }
  return absl::OkStatus();
}

bool ModelRegistry::AwaitGivenUp(const std::string& name) {
  return reaper_.AwaitGivenUp(name, SteadyNow() + options_.drain_timeout);
}

}  // namespace attendant
