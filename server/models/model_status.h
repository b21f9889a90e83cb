// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/models/servable_model.h"

namespace attendant {

enum class ModelState {
  kLoading,
  kReady,
  kFailed,  // it did not load
  kLost,    // it served until its devices were lost
  kDraining
};

struct ModelStatus {
  std::string name;
  ModelState state = ModelState::kLoading;
  absl::Status error;              // the reason, with kFailed and kLost
  int stalled_workers = 0;         // their batches run too long; the model still takes requests
  bool has_stalled = false;        // now or earlier
  ServableModel* model = nullptr;  // null until it has loaded

  // It does not serve, and will not.
  bool HasFailed() const { return state == ModelState::kFailed || state == ModelState::kLost; }

  // The loaded model when it is of that kind, else null.
  EncoderModel* encoder() const { return model == nullptr ? nullptr : model->AsEncoder(); }
  AttentionModel* attention() const { return model == nullptr ? nullptr : model->AsAttention(); }
};

}  // namespace attendant
