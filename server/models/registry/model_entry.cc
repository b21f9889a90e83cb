// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/model_entry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/retry/retry_hint.h"

namespace attendant {
namespace {

// Why the model does not take requests; empty when it does.
std::string Reason(const ModelStatus& status) {
  switch (status.state) {
    case ModelState::kReady:
      return "";
    case ModelState::kLoading:
      return " is loading";
    case ModelState::kUnloaded:
      return " is not loaded";
    case ModelState::kUnloading:
      return " is being unloaded";
    case ModelState::kDraining:
      return " is draining: the server is stopping";
    case ModelState::kIdle:
      if (status.error.ok()) return " is idle: a request loads it";
      [[fallthrough]];
    case ModelState::kIdleFailed:
      return absl::StrCat(" is idle, and the last load failed: ", status.error.message());
    case ModelState::kLost:
      return absl::StrCat(" has lost what it computed on: ", status.error.message());
    case ModelState::kFailed:
      break;
  }
  return absl::StrCat(" failed to load: ", status.error.message());
}

}  // namespace

void ModelEntry::SetModel(std::shared_ptr<ServableModel> loaded) {
  status.model = std::move(loaded);
  status.state = ModelState::kReady;
  status.error = absl::OkStatus();
  status.stalled_workers = 0;
  load_owed = false;
  next_try = absl::InfinitePast();
  retry_pause = absl::ZeroDuration();
  at_start = false;
  status.facts.reset();
  status.info.reset();
  status.module.reset();
  if (const EncoderModel* const encoder = status.encoder()) {
    status.facts = encoder->Facts();
    status.info = std::make_shared<const EncoderInfo>(encoder->Info());
  }
  const AttentionModel* const attention = status.attention();
  status.is_module = attention != nullptr;
  if (status.is_module && attention->module != nullptr) {
    status.module = {.config = attention->module->config(), .dtype = attention->module->dtype()};
  }
}

std::shared_ptr<ServableModel> ModelEntry::TakeModel() {
  status.stalled_workers = 0;  // nobody finds the entry by its model from now on
  return std::exchange(status.model, nullptr);
}

int ModelEntry::Rank(absl::Time now) const {
  if (status.Serves() && next_try <= now) return 2;
  return status.IsIdle() ? 1 : 0;
}

absl::Status ModelEntry::Unavailable(absl::Time now) const {
  if (status.state == ModelState::kReady) return absl::OkStatus();
  absl::Status error =
      absl::UnavailableError(absl::StrCat("model '", status.name, "'", Reason(status)));
  if (status.IsIdle()) SetRetryAfter(error, std::max(absl::Seconds(1), next_try - now));
  return error;
}

}  // namespace attendant
