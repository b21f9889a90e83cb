// SPDX-License-Identifier: Apache-2.0
// The loading thread of the registry: loads, replaces and unloads models, one after the other.
#include <pthread.h>

#include <algorithm>
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

}  // namespace

void ModelRegistry::Load(const std::string& name, Done done) {
  AddJob({.kind = LoadJob::Kind::kLoad, .name = name}, std::move(done));
}

void ModelRegistry::Unload(const std::string& name, Done done) {
  AddJob({.kind = LoadJob::Kind::kUnload, .name = name}, std::move(done));
}

absl::Status ModelRegistry::StartLoad(const std::string& name) {
  Done unheard = [](const absl::Status&) {};
  return TryAddJob({.kind = LoadJob::Kind::kLoad, .name = name}, unheard);
}

absl::Status ModelRegistry::StartUnload(const std::string& name) {
  Done unheard = [](const absl::Status&) {};
  return TryAddJob({.kind = LoadJob::Kind::kUnload, .name = name}, unheard);
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
  if (draining_) return StoppingError();
  if (job.kind == LoadJob::Kind::kLoadIdle && !AnyNeedsLoad(job.name)) return absl::OkStatus();
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
  while (!draining_ && jobs_.empty()) {
    const absl::Time now = SteadyNow();
    absl::Time next = NextIdle(now);
    if (const Entry* const retry = NextRetry()) next = std::min(next, retry->next_try);
    if (next <= now) break;
    work_.WaitUntil(mutex_, next);
  }
  return !draining_;
}

std::optional<LoadJob> ModelRegistry::TakeJob() {
  absl::MutexLock lock(&mutex_);
  if (std::optional<LoadJob> job = jobs_.Begin()) return job;
  const Entry* const retry = NextRetry();
  if (retry == nullptr || !retry->NeedsLoad()) return std::nullopt;
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
  if (const std::shared_ptr<ModelMetrics> series = metrics_.FindModel(job.name)) {
    series->SetFailed(AnyLoadFailed(List(), job.name));
  }
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
    // What was to be loaded at the start has failed; what serves stays.
    FailLoads(name, sources.status(), [](const Entry& entry) { return !entry.built_in; });
    return sources.status();
  }
  absl::Status status;
  for (const ModelSource& source : *sources) {
    if (!IsCurrent(source)) status.Update(LoadVersion(source));
  }
  if (status.ok()) {
    GiveUpOthers(name, *sources);
  } else {
    // Nothing else would end the first load of a version that is not among the sources.
    FailLoads(name,
              absl::Status(status.code(),
                           absl::StrCat("another version has taken its place, and did not load: ",
                                        status.message())),
              [](const Entry& entry) { return entry.at_start; });
  }
  return status;
}

void ModelRegistry::FailLoads(const std::string& name, const absl::Status& why,
                              bool (*is_meant)(const Entry& entry)) {
  std::vector<ModelSource> failed;
  {
    absl::ReaderMutexLock lock(&mutex_);
    for (const auto& entry : entries_) {
      if (entry->status.name == name && is_meant(*entry)) failed.push_back(entry->source);
    }
  }
  for (const ModelSource& source : failed) EndLoad(source, "", why).IgnoreError();
}

std::string ModelRegistry::Fingerprint(const ModelSource& source) const {
  return options_.fingerprint ? options_.fingerprint(source) : "";
}

// A client that loads an idle model wants it loaded. A change in the repository loads no version
// that nobody asks for.
bool ModelRegistry::IsCurrent(const ModelSource& source) const {
  const std::string found = Fingerprint(source);
  absl::ReaderMutexLock lock(&mutex_);
  const Entry* const entry = FindEntry(source.name, source.version);
  if (entry == nullptr || found.empty() || entry->fingerprint != found) return false;
  const ModelStatus& status = entry->status;
  if (status.IsIdle()) return options_.control == ModelControl::kPoll;
  return status.state == ModelState::kReady && status.error.ok() && status.stalled_workers == 0;
}

absl::Status ModelRegistry::LoadVersion(const ModelSource& source) {
  ATTENDANT_RETURN_IF_ERROR(BeginLoad(source));
  const std::string fingerprint = Fingerprint(source);  // a change during the load is a later one
  return EndLoad(source, fingerprint, load_(source, metrics_, executor_));
}

absl::Status ModelRegistry::BeginLoad(const ModelSource& source) {
  metrics_.ForModel(source.name);  // its series are there even when the load fails
  bool changed = false;
  ModelStatus status;
  {
    absl::MutexLock lock(&mutex_);
    if (draining_) return StoppingError();
    Entry* entry = FindEntry(source.name, source.version);
    if (entry == nullptr) {
      changed = true;
      entry = &AddEntry(source, ModelState::kLoading);
    }
    entry->source = source;
    const ModelState state = entry->status.state;
    if (state != ModelState::kReady && !entry->status.IsIdle() && state != ModelState::kLoading) {
      entry->status.state = ModelState::kLoading;
      changed = true;
    }
    status = entry->status;
  }
  if (changed) Notify(status);
  return absl::OkStatus();
}

absl::Status ModelRegistry::EndLoad(const ModelSource& source, const std::string& fingerprint,
                                    absl::StatusOr<std::unique_ptr<ServableModel>> loaded) {
  const absl::Status failure = WithReadableMessage(loaded.status());
  std::shared_ptr<ServableModel> model;
  if (loaded.ok()) model = reaper_.Share(*std::move(loaded));
  ModelStatus status;
  {
    absl::MutexLock lock(&mutex_);
    Entry* const entry = FindEntry(source.name, source.version);
    if (draining_ || entry == nullptr) return StoppingError();
    entry->at_start = false;
    if (model != nullptr) {
      GiveUp(*entry);
      model->Touch();  // its load is no time without requests
      entry->SetModel(model);
      entry->fingerprint = fingerprint;
    } else {
      FailLoad(*entry, failure);
    }
    UpdateAnyIdle();
    status = entry->status;
  }
  if (model != nullptr) model->metrics->SetLoaded(model->LoadInfo());
  Notify(status);
  if (model == nullptr) return failure;
  const ServableModel* const key = model.get();
  model->batcher->SetLostListener([this, key](const absl::Status& why) { Lose(key, why); });
  model->batcher->SetStallListener([this, key](int workers) { SetStalled(key, workers); });
  return absl::OkStatus();
}

// What has loaded before serves on, unless it is idle and broken.
void ModelRegistry::FailLoad(Entry& entry, const absl::Status& why) {
  entry.status.error = why;
  if (entry.status.IsIdle()) {
    entry.FailIdleLoad(why, options_.first_retry);
  } else if (entry.status.state != ModelState::kReady) {
    GiveUp(entry);
    entry.status.state = ModelState::kFailed;
  }
  UncountLoaded(entry.status.name);
}

void ModelRegistry::GiveUpOthers(const std::string& name, const std::vector<ModelSource>& kept) {
  std::vector<ModelStatus> gone;
  {
    absl::MutexLock lock(&mutex_);
    if (draining_) return;
    std::erase_if(entries_,
                  [&](const std::unique_ptr<Entry>& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                    if (entry->status.name != name || entry->built_in) return false;
                    for (const ModelSource& source : kept) {
                      if (source.version == entry->status.version) return false;
                    }
                    GiveUp(*entry);
                    entry->status.state = ModelState::kUnloaded;
                    gone.push_back(entry->status);
                    return true;
                  });
    UpdateAnyIdle();
  }
  for (const ModelStatus& status : gone) Notify(status);
}

absl::Status ModelRegistry::RunUnload(const std::string& name) {
  const auto set_state = [&](ModelState state) {
    std::vector<ModelStatus> changed;
    {
      absl::MutexLock lock(&mutex_);
      if (draining_) return false;
      for (const auto& entry : entries_) {
        if (entry->status.name != name || entry->built_in) continue;
        GiveUp(*entry);
        entry->status.state = state;
        entry->status.error = absl::OkStatus();
        changed.push_back(entry->status);
      }
      UpdateAnyIdle();
    }
    for (const ModelStatus& status : changed) Notify(status);
    return !changed.empty();
  };
  if (!set_state(ModelState::kUnloading)) return NoModel(name);
  if (!AwaitGivenUp(name)) reaper_.End(name);
  metrics_.RemoveModel(name);
  if (absl::IsNotFound(FindSources(name).status())) {
    GiveUpOthers(name, {});
  } else {
    set_state(ModelState::kUnloaded);
  }
  return absl::OkStatus();
}

void ModelRegistry::GiveUp(Entry& entry) {
  if (entry.status.model == nullptr) return;
  reaper_.GiveUp(std::exchange(entry.status.model, nullptr));
  entry.status.stalled_workers = 0;  // SetStalled does not find the entry from now on
}

bool ModelRegistry::AwaitGivenUp(const std::string& name) {
  return reaper_.AwaitGivenUp(name, SteadyNow() + options_.drain_timeout);
}

}  // namespace attendant
