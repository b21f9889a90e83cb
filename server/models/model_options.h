// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "kernels/core/threads/thread_team.h"
#include "server/batching/batcher.h"
#include "server/limits/limits.h"

namespace attendant {

struct ModelSource {
  std::string name;
  std::string directory;
};

// How models are loaded and served; the same for all of them.
struct ModelOptions {
  std::string dtype = "auto";  // of encoders: a DTypeName or auto
  // Of attention modules, which always compute on the CPU; an error when they cannot.
  absl::StatusOr<DType> module_dtype = DType::kF32;
  std::string attention_isa = "auto";   // for attention::FindIsa
  std::vector<ThreadTeam> replicas{1};  // on the CPU, a session for each team
  int device_sessions = 0;              // on devices, the number of sessions; 0: the back end's own
  BatcherOptions batcher;
  AttentionLimits attention{};
};

}  // namespace attendant
