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
  kReady,      // also while the same version is loaded anew
  kIdle,       // unloaded for want of requests: the next one loads it, and waits
  kFailed,     // it did not load
  kLost,       // it served until its devices were lost
  kUnloading,  // it answers the requests from before
  kDraining    // likewise, and the server stops
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
  // The reason, with kFailed and kLost, and with kLoading that of the state before it. With kReady:
  // why the last load failed, when the model from the load before it stayed. With kIdle: why it
  // could not be loaded again.
  absl::Status error;
  // With kIdle and an error: until when it is not tried again, a steady time.
  absl::Time next_try = absl::InfinitePast();
  int stalled_workers = 0;  // their batches run too long; the model still takes requests
  std::shared_ptr<ServableModel> model;     // null unless it has loaded
  std::optional<EncoderFacts> facts;        // of an encoder, once it has loaded
  std::shared_ptr<const EncoderInfo> info;  // likewise
  bool is_module = false;                   // an attention module, known once it has loaded
  std::optional<ModuleInfo> module;         // of one with weights

  // True if the version does not serve, and no load of it is planned.
  bool HasFailed() const { return state == ModelState::kFailed || state == ModelState::kLost; }
  // True if the version has loaded, and keeps its state when a later load fails.
  bool OutlastsLoads() const { return state == ModelState::kReady || state == ModelState::kIdle; }
  // True if the model is idle, and memory was too short to load it again. That passes: its next
  // requests try.
  bool LacksMemory() const {
    return state == ModelState::kIdle && absl::IsResourceExhausted(error);
  }
  // True if the last load failed: the first one, or a later one.
  bool LastLoadFailed() const {
    return state == ModelState::kFailed || (OutlastsLoads() && !error.ok() && !LacksMemory());
  }
  // True if a load failed and the next try runs or is planned, without requests.
  bool IsTriedAgain() const {
    return (state == ModelState::kLoading || state == ModelState::kIdle) && !error.ok() &&
           !LacksMemory();
  }
  // True if the version takes requests, now or after a load that the request waits for.
  bool Serves() const { return OutlastsLoads() && !IsTriedAgain(); }

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
