// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/model_health.h"

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

absl::Status Stalled(const ModelStatus& status) {
  return absl::UnavailableError(absl::StrCat("model '", status.name,
                                             "' has stalled: ", status.stalled_workers,
                                             " workers do not end their batches"));
}

}  // namespace

absl::Status CheckReady(const std::vector<ModelEntry>& entries, const RegistryOptions& options,
                        absl::Time now) {
  absl::Status failure;  // of a model
  bool any = false;
  for (const ModelEntry& entry : entries) {
    const ModelStatus& status = entry.status;
    if (status.stalled_workers > 0) return Stalled(status);
    if (status.Serves()) {
      any |= !entry.built_in;
    } else if (entry.at_start || status.state == ModelState::kDraining) {
      return entry.Unavailable(now);
    } else if (!status.error.ok()) {  // it has failed, or is loaded anew after that
      failure = entry.Unavailable(now);
      if (options.readiness == Readiness::kEveryModel) return failure;
    }
  }
  if (any) return absl::OkStatus();
  if (failure.ok() && options.control != ModelControl::kExplicit) {
    return absl::UnavailableError("no model is there yet");
  }
  return failure;
}

absl::Status CheckLive(const std::vector<ModelEntry>& entries, absl::Time now) {
  absl::Status loss;
  for (const ModelEntry& entry : entries) {
    if (entry.built_in) continue;
    const ModelStatus& status = entry.status;
    if (!status.HasFailed() && status.state != ModelState::kUnloaded) return absl::OkStatus();
    if (status.state == ModelState::kLost) loss = entry.Unavailable(now);
  }
  return loss;
}

}  // namespace attendant
