// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/models/model_options.h"
#include "server/models/registry/model_status.h"
#include "server/models/servable_model.h"

namespace attendant {

// One version of a model in a ModelTable. Times are steady. Reads no clock. Thread-compatible.
struct ModelEntry {
  ModelSource source;
  ModelStatus status;
  std::string fingerprint;  // of the files from which its model was last loaded; empty: not known
  bool built_in = false;
  bool at_start = false;   // the server is not ready before its first load has ended
  bool load_owed = false;  // of a ready version: a load has begun, and none has ended well since
  // Of an idle model whose last load failed: until when it is not tried again.
  absl::Time next_try = absl::InfinitePast();
  absl::Duration retry_pause;  // from the failure to `next_try`

  // The model serves from now on: with its facts, and without what failed before.
  void SetModel(std::shared_ptr<ServableModel> loaded);
  // Takes the model away. Null: there is none.
  std::shared_ptr<ServableModel> TakeModel();

  // True if it is idle and a request may load it again.
  bool NeedsLoad(absl::Time now) const { return status.IsIdle() && next_try <= now; }
  // Requests without a version go to the highest version of the highest rank.
  int Rank(absl::Time now) const;
  // UNAVAILABLE with the reason, of an idle model with a RetryAfter; OK when it is ready.
  absl::Status Unavailable(absl::Time now) const;
};

}  // namespace attendant
