// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/model_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"

namespace attendant {
namespace {

void TakeModel(ModelEntry& entry, TableChange& change) {
  if (entry.status.model != nullptr) change.given_up.push_back(entry.TakeModel());
}

auto OfVersion(absl::string_view name, int64_t version) {
  return [name, version](const ModelEntry& entry) {
    return entry.status.name == name && entry.status.version == version;
  };
}

// The first entry that is meant, of a vector that may be constant. Null: there is none.
template <typename Entries, typename IsMeant>
auto* FindIf(Entries& entries, IsMeant is_meant) {
  const auto entry = std::find_if(entries.begin(), entries.end(), is_meant);
  return entry != entries.end() ? &*entry : nullptr;
}

bool HasVersion(const std::vector<ModelSource>& sources, int64_t version) {
  return std::any_of(sources.begin(), sources.end(),
                     [version](const ModelSource& source) { return source.version == version; });
}

}  // namespace

void ModelTable::AddAtStart(const ModelSource& source) {
  Add(source, ModelState::kLoading).at_start = true;
}

void ModelTable::AddUnloaded(const ModelSource& source) { Add(source, ModelState::kUnloaded); }

void ModelTable::AddBuiltIn(std::shared_ptr<ServableModel> model) {
  ModelEntry& entry = Add({.name = model->name, .directory = ""}, ModelState::kReady);
  entry.built_in = true;
  entry.SetModel(std::move(model));
}

ModelEntry& ModelTable::Add(const ModelSource& source, ModelState state) {
  auto place = entries_.end();
  for (auto other = entries_.begin(); other != entries_.end(); ++other) {
    const ModelStatus& status = other->status;
    if (status.name != source.name) continue;
    place = status.version < source.version ? other + 1 : other;
    if (status.version > source.version) break;
  }
  ModelEntry entry;
  entry.source = source;
  entry.status.name = source.name;
  entry.status.version = source.version;
  entry.status.state = state;
  return *entries_.insert(place, std::move(entry));
}

const ModelEntry* ModelTable::Find(absl::string_view name, int64_t version) const {
  return FindIf(entries_, OfVersion(name, version));
}

ModelEntry* ModelTable::FindToChange(const ModelSource& source) {
  if (draining_) return nullptr;
  return FindIf(entries_, OfVersion(source.name, source.version));
}

ModelEntry* ModelTable::FindToChange(const ServableModel* model) {
  if (draining_) return nullptr;
  return FindIf(entries_,
                [model](const ModelEntry& entry) { return entry.status.model.get() == model; });
}

absl::StatusOr<const ModelEntry*> ModelTable::Choose(absl::string_view name,
                                                     absl::string_view version,
                                                     absl::Time now) const {
  const ModelEntry* best = nullptr;
  std::vector<int64_t> versions;
  for (const ModelEntry& entry : entries_) {
    if (entry.status.name != name) continue;
    versions.push_back(entry.status.version);
    if (!version.empty()) {
      if (version == absl::StrCat(entry.status.version)) return &entry;
    } else if (best == nullptr || entry.Rank(now) >= best->Rank(now)) {
      best = &entry;
    }
  }
  if (best != nullptr) return best;
  if (versions.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no model ", Quote(name)));
  }
  return absl::NotFoundError(absl::StrCat("model ", Quote(name), " has no version ", Quote(version),
                                          ", only ", absl::StrJoin(versions, ", ")));
}

std::vector<ModelSource> ModelTable::Sources(
    absl::string_view name, absl::FunctionRef<bool(const ModelEntry&)> is_meant) const {
  std::vector<ModelSource> sources;
  for (const ModelEntry& entry : entries_) {
    if (entry.status.name == name && is_meant(entry)) sources.push_back(entry.source);
  }
  return sources;
}

bool ModelTable::AnyServes(absl::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(), [name](const ModelEntry& entry) {
    return entry.status.name == name && entry.status.Serves();
  });
}

bool ModelTable::AnyNeedsLoad(absl::string_view name, absl::Time now) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const ModelEntry& entry) {
    return entry.status.name == name && entry.NeedsLoad(now);
  });
}

bool ModelTable::AnyIdle() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const ModelEntry& entry) { return entry.status.IsIdle(); });
}

ModelTable::Models ModelTable::LoadedModels() const {
  Models models;
  for (const ModelEntry& entry : entries_) {
    if (entry.status.model != nullptr) models.push_back(entry.status.model);
  }
  return models;
}

TableChange ModelTable::BeginLoad(const ModelSource& source) {
  if (draining_) return {};
  ModelEntry* const entry = FindToChange(source);
  if (entry == nullptr)
    return {.changed = {Add(source, ModelState::kLoading).status}, .given_up = {}};
  entry->source = source;
  entry->load_owed = true;
  ModelStatus& status = entry->status;
  if (status.state == ModelState::kReady || status.IsIdle()) return {};
  if (status.state == ModelState::kLoading) return {};
  status.state = ModelState::kLoading;
  return {.changed = {status}, .given_up = {}};
}

TableChange ModelTable::KeepModel(const ModelSource& source) {
  ModelEntry* const entry = FindToChange(source);
  if (entry == nullptr) return {};
  if (entry->status.state != ModelState::kReady || entry->status.error.ok()) return {};
  entry->status.error = absl::OkStatus();
  return {.changed = {entry->status}, .given_up = {}};
}

TableChange ModelTable::EndLoad(const ModelSource& source, const std::string& fingerprint,
                                std::shared_ptr<ServableModel> model) {
  ModelEntry* const entry = FindToChange(source);
  if (entry == nullptr) return {};
  TableChange change;
  TakeModel(*entry, change);
  entry->SetModel(std::move(model));
  entry->fingerprint = fingerprint;
  change.changed.push_back(entry->status);
  return change;
}

TableChange ModelTable::FailLoad(const ModelSource& source, const absl::Status& why,
                                 const IdlePolicy& idle, absl::Time now) {
  ModelEntry* const entry = FindToChange(source);
  if (entry == nullptr) return {};
  TableChange change;
  entry->at_start = false;
  entry->status.error = why;
  if (entry->status.IsIdle()) {
    idle.FailLoad(*entry, why, now);
  } else if (entry->status.state != ModelState::kReady) {
    TakeModel(*entry, change);
    entry->status.state = ModelState::kFailed;
  }
  change.changed.push_back(entry->status);
  return change;
}

TableChange ModelTable::Unload(absl::string_view name, ModelState state) {
  TableChange change;
  if (draining_) return change;
  for (ModelEntry& entry : entries_) {
    if (entry.status.name != name || entry.built_in) continue;
    TakeModel(entry, change);
    entry.status.state = state;
    entry.status.error = absl::OkStatus();
    change.changed.push_back(entry.status);
  }
  return change;
}

TableChange ModelTable::RemoveOthers(absl::string_view name, const std::vector<ModelSource>& kept) {
  TableChange change;
  if (draining_) return change;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    ModelStatus& status = entry->status;
    if (status.name != name || entry->built_in || HasVersion(kept, status.version)) {
      ++entry;
      continue;
    }
    TakeModel(*entry, change);
    status.state = ModelState::kUnloaded;
    change.changed.push_back(status);
    entry = entries_.erase(entry);
  }
  return change;
}

TableChange ModelTable::UnloadIdle(const std::vector<std::string>& names) {
  TableChange change;
  if (draining_) return change;
  for (ModelEntry& entry : entries_) {
    if (entry.status.state != ModelState::kReady || entry.built_in) continue;
    if (std::find(names.begin(), names.end(), entry.status.name) == names.end()) continue;
    TakeModel(entry, change);
    entry.status.state = ModelState::kIdle;
    entry.status.error = absl::OkStatus();  // of a look-up: a load that fails keeps its model
    change.changed.push_back(entry.status);
  }
  return change;
}

TableChange ModelTable::Lose(const ServableModel* model, const absl::Status& why) {
  ModelEntry* const entry = FindToChange(model);
  if (entry == nullptr || entry->status.state != ModelState::kReady) return {};
  entry->status.state = ModelState::kLost;
  entry->status.error = why;
  return {.changed = {entry->status}, .given_up = {}};
}

TableChange ModelTable::SetStalled(const ServableModel* model, int workers) {
  ModelEntry* const entry = FindToChange(model);
  if (entry == nullptr) return {};
  entry->status.stalled_workers = workers;
  return {.changed = {entry->status}, .given_up = {}};
}

TableChange ModelTable::StartDraining() {
  TableChange change;
  if (std::exchange(draining_, true)) return change;
  for (ModelEntry& entry : entries_) {
    ModelStatus& status = entry.status;
    if (status.HasFailed() || status.state == ModelState::kUnloaded) continue;
    status.state = ModelState::kDraining;
    if (!entry.built_in) change.changed.push_back(status);
  }
  return change;
}

TableChange ModelTable::Clear() {
  TableChange change;
  for (ModelEntry& entry : entries_) TakeModel(entry, change);
  entries_.clear();
  return change;
}

}  // namespace attendant
