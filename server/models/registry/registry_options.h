// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/models/model_loader.h"

namespace attendant {

// When the whole server counts as ready: once every model of the start has ended its load, and one,
// or all, serve.
enum class Readiness { kAnyModel, kEveryModel };

// The source of loads and unloads after the start, in Triton's words.
enum class ModelControl { kNone, kExplicit, kPoll };

// The folders of the versions of a model that are to be loaded, ascending. NOT_FOUND: there is no
// such model. Called by the loading thread; may read files.
using ModelFinder =
    std::function<absl::StatusOr<std::vector<ModelSource>>(const std::string& name)>;

// Tells one state of a version's files from another. Empty: not known. Called by the loading
// thread; may read files.
using ModelFingerprint = std::function<std::string(const ModelSource& source)>;

struct RegistryOptions {
  Readiness readiness = Readiness::kAnyModel;
  ModelControl control = ModelControl::kNone;
  // A model without requests for so long is unloaded, and loaded again for the next one.
  absl::Duration unload_idle = absl::InfiniteDuration();
  // An idle model that could not be loaded again is tried again after so long, whether requests ask
  // for it or not; each further time after twice as long, at most a minute. One for which memory
  // was short is tried again for a request, each time after so long.
  absl::Duration first_retry = absl::Seconds(5);
  // The time that a model which is unloaded may take to answer its requests. A load waits as long
  // for the requests of the model that it has replaced, but ends none of them.
  absl::Duration drain_timeout = absl::Seconds(25);
  ModelFinder find{};  // empty: the models that SetModels was given
  // A version whose fingerprint is that of its last load is not loaded anew. Empty: all versions of
  // a model are, at each of its loads.
  ModelFingerprint fingerprint{};
};

}  // namespace attendant
