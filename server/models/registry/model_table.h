// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/models/model_options.h"
#include "server/models/registry/idle_policy.h"
#include "server/models/registry/model_entry.h"
#include "server/models/registry/model_status.h"
#include "server/models/servable_model.h"

namespace attendant {

// The part of a change that its caller must complete. Empty: nothing has changed.
struct TableChange {
  std::vector<ModelStatus> changed;  // for the listener: each after the change
  // Models that no version has any more, for the ModelReaper. They go there under the lock that
  // guards the table: a drain must find each model here or there.
  std::vector<std::shared_ptr<ServableModel>> given_up;
};

// The versions of the models, the state of each, and the changes of these states. The versions of
// one model are neighbours, ascending; the models have the order in which they were added.
//
// Data only: loads nothing, waits for nothing, calls nobody, and reads no clock; `now` is a steady
// time. After StartDraining all changes but Clear return an empty change. Thread-compatible.
class ModelTable {
 public:
  using Models = std::vector<std::shared_ptr<ServableModel>>;

  // A version that is to be loaded; the server is not ready before that load has ended.
  void AddAtStart(const ModelSource& source);
  void AddUnloaded(const ModelSource& source);  // a version that is loaded on request only
  // A model that needs no loading. No load or unload concerns it.
  void AddBuiltIn(std::shared_ptr<ServableModel> model);

  const std::vector<ModelEntry>& entries() const { return entries_; }
  const ModelEntry* Find(absl::string_view name, int64_t version) const;  // null: it is not there
  // The version for a request. `version` is a decimal number, or empty: the highest version of the
  // highest rank. NOT_FOUND: no such model or version.
  absl::StatusOr<const ModelEntry*> Choose(absl::string_view name, absl::string_view version,
                                           absl::Time now) const;
  // The sources of the versions of a model that are meant.
  std::vector<ModelSource> Sources(absl::string_view name,
                                   absl::FunctionRef<bool(const ModelEntry&)> is_meant) const;
  bool AnyServes(absl::string_view name) const;  // any version of the model
  bool AnyNeedsLoad(absl::string_view name, absl::Time now) const;
  bool AnyIdle() const;         // any version of any model
  Models LoadedModels() const;  // also of versions that serve no more
  bool draining() const { return draining_; }

  // A load of a version begins, which is new, or is loaded anew: what has loaded before serves on.
  // Empty when no state changes.
  TableChange BeginLoad(const ModelSource& source);
  // A version needs no load: a ready one has no error any more.
  TableChange KeepModel(const ModelSource& source);
  // The load of a version has ended with `model`, or with an error. After an error, a model from
  // before serves on, and an idle one waits for its next try. Empty: the version is not there.
  TableChange EndLoad(const ModelSource& source, const std::string& fingerprint,
                      std::shared_ptr<ServableModel> model);
  TableChange FailLoad(const ModelSource& source, const absl::Status& why, const IdlePolicy& idle,
                       absl::Time now);

  // All versions of a model lose their models and get this state.
  TableChange Unload(absl::string_view name, ModelState state);
  // The versions of a model that are not among `kept` leave the table.
  TableChange RemoveOthers(absl::string_view name, const std::vector<ModelSource>& kept);
  // The ready versions of these models turn idle.
  TableChange UnloadIdle(const std::vector<std::string>& names);

  // The version that serves with this model. Empty: none does any more.
  TableChange Lose(const ServableModel* model, const absl::Status& why);
  TableChange SetStalled(const ServableModel* model, int workers);

  // All versions that serve, or are to serve, turn kDraining. They keep their models.
  TableChange StartDraining();
  // Gives up all models, and forgets all versions without a word to the listener.
  TableChange Clear();

 private:
  ModelEntry& Add(const ModelSource& source, ModelState state);
  // The version to change; null when it is not there, or the table drains.
  ModelEntry* FindToChange(const ModelSource& source);
  ModelEntry* FindToChange(const ServableModel* model);

  std::vector<ModelEntry> entries_;
  bool draining_ = false;
};

}  // namespace attendant
