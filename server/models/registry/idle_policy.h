// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/models/registry/model_entry.h"
#include "server/models/registry/registry_options.h"

namespace attendant {

// The times of idle models: unloaded for want of requests, and loaded again for the next one.
//
// All loaded versions of a model become idle together: a request does not load one of them for the
// others. One that failed keeps no other loaded. One that could not be loaded anew keeps all: what
// serves may not come back. One whose look-up failed keeps none: its own files may be as they were.
// One that has stalled is in use: its memory would not come free.
//
// An idle model that could not be loaded again is tried again without requests too: it is not
// ready, so that load balancers may send none. One for which memory was short stays ready, and is
// loaded for requests only: it would take the memory of models that are asked for.
//
// Immutable; reads the entries of a ModelTable, and no clock. Times are steady. Thread-safe.
class IdlePolicy {
 public:
  // Only `unload_idle` and `first_retry` count.
  explicit IdlePolicy(const RegistryOptions& options)
      : unload_idle_(options.unload_idle), first_retry_(options.first_retry) {}

  // When the next model is to be unloaded if no request comes, or to be tried again without one.
  // Not after `now`: something is due. Infinite: nothing will be.
  absl::Time NextTime(const std::vector<ModelEntry>& entries, absl::Time now) const;
  // The models that are to be unloaded now.
  std::vector<std::string> IdleModels(const std::vector<ModelEntry>& entries, absl::Time now) const;
  // The version that has been due the longest to be tried again without a request. Null: none is.
  static const ModelEntry* DueRetry(const std::vector<ModelEntry>& entries, absl::Time now);

  // Sets the state and the next try of an idle version that could not be loaded for `why`.
  void FailLoad(ModelEntry& entry, const absl::Status& why, absl::Time now) const;

 private:
  // When the model is to be unloaded if no request comes. Infinite: never.
  absl::Time UnloadTime(const std::vector<ModelEntry>& entries, absl::string_view name,
                        absl::Time now) const;

  const absl::Duration unload_idle_;
  const absl::Duration first_retry_;
};

}  // namespace attendant
