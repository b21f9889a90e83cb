// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "kernels/core/dtype.h"
#include "kernels/core/session.h"
#include "kernels/core/threads/thread_team.h"
#include "server/models/memory/model_memory.h"
#include "server/models/sentence/model_folder.h"

namespace attendant {

// The options of a model on the CPU that its memory depends on.
struct EstimateOptions {
  DType dtype = DType::kF32;
  SessionLimits limits;
  std::span<const ThreadTeam> replicas;
  bool merges_adapter = false;  // into copies of the weights that adapters change
};

// The memory of the checkpoint in `folder`, from its config.json and the headers of its
// safetensors files: no weight is read. The process grows by less than peak(); held() is within a
// quarter and some MiB of its growth (tests/server/models/memory). Errors are those of reading the
// checkpoint.
absl::StatusOr<MemoryEstimate> EstimateMemory(const ModelFolder& folder,
                                              const EstimateOptions& options);

}  // namespace attendant
