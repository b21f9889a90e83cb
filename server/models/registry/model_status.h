// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/models/attention_model.h"
#include "server/models/encoder_model.h"
#include "server/models/servable_model.h"

namespace attendant {

enum class ModelState {
  kUnloaded,  // loaded on request only
  kLoading,
  kReady,       // also while the same version is loaded anew
  kIdle,        // unloaded for want of requests: the next one loads it, and waits
  kIdleFailed,  // it was idle, and could not be loaded again: it is tried again without requests
  kFailed,      // it did not load
  kLost,        // it served until its devices were lost
  kUnloading,   // it answers the requests from before
  kDraining     // likewise, and the server stops
};

// The kind of a change of a version that a listener hears of.
enum class ModelNews {
  kState,  // or its model, or how a load ended
  kStall   // its stalled workers
};

// One version of a model.
struct ModelStatus {
  std::string name;
  int64_t version = 1;
  ModelState state = ModelState::kLoading;
  // The reason, with kFailed, kIdleFailed and kLost, and with kLoading that of the state before it.
  // With kReady: why the last load failed, when the model from the load before it stayed. With
  // kIdle: why memory was too short to load it again.
  absl::Status error;
  int stalled_workers = 0;  // their batches run too long; the model still takes requests
  std::shared_ptr<ServableModel> model;     // null unless it has loaded
  std::optional<EncoderFacts> facts;        // of an encoder, once it has loaded
  std::shared_ptr<const EncoderInfo> info;  // likewise
  bool is_module = false;                   // an attention module, known once it has loaded
  std::optional<ModuleInfo> module;         // of one with weights

  // True if the version does not serve, and no load of it is planned.
  bool HasFailed() const { return state == ModelState::kFailed || state == ModelState::kLost; }
  // True if the model was unloaded for want of requests.
  bool IsIdle() const { return state == ModelState::kIdle || state == ModelState::kIdleFailed; }
  // True if the last load failed: the first one, or a later one.
  bool LastLoadFailed() const {
    return state == ModelState::kFailed || state == ModelState::kIdleFailed ||
           (state == ModelState::kReady && !error.ok());
  }
  // True if the version takes requests, now or after a load that the request waits for.
  bool Serves() const { return state == ModelState::kReady || state == ModelState::kIdle; }

  // The loaded model when it is of that kind, else null.
  EncoderModel* encoder() const { return model == nullptr ? nullptr : model->AsEncoder(); }
  AttentionModel* attention() const { return model == nullptr ? nullptr : model->AsAttention(); }
};

// True if the last load of any version of the model failed.
inline bool AnyLoadFailed(const std::vector<ModelStatus>& models, const std::string& name) {
  return std::any_of(models.begin(), models.end(), [&name](const ModelStatus& status) {
    return status.name == name && status.LastLoadFailed();
  });
}

}  // namespace attendant
