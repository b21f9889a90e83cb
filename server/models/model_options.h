// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "kernels/core/threads/thread_team.h"
#include "server/batching/batcher.h"
#include "server/batching/compute_slot.h"
#include "server/limits/limits.h"
#include "server/models/memory/model_memory.h"

namespace attendant {

// The folder of one version of a model.
struct ModelSource {
  std::string name;
  std::string directory;
  int64_t version = 1;
};

// The options for loading and serving, the same for all models.
struct ModelOptions {
  std::string dtype = "auto";  // of encoders: a DTypeName or auto
  // The number format of attention modules, which always compute on the CPU; an error if the CPU
  // lacks it.
  absl::StatusOr<DType> module_dtype = DType::kF32;
  std::string attention_isa = "auto";  // for attention::FindIsa, like the next
  std::string attention_matmul = "auto";
  std::vector<ThreadTeam> replicas{1};  // on the CPU, a session for each team
  // Empty, or [replicas]: encoders on the CPU compute in turns on the processors of a team. Each
  // has its weight, or 1.
  std::vector<std::shared_ptr<ComputeSlot>> compute_slots{};
  absl::flat_hash_map<std::string, double> model_weights{};
  absl::flat_hash_map<std::string, std::string> model_adapters{};  // merged into encoders
  int device_sessions = 0;  // on devices, the number of sessions; 0: the back end's own
  BatcherOptions batcher;
  AttentionLimits attention{};
  int attention_nice = 0;                 // niceness of the threads that compute attention, 0 to 19
  std::shared_ptr<ModelMemory> memory{};  // null: loads are not checked against memory

  // The adapter of a model; empty: none.
  std::string AdapterOf(const std::string& name) const {
    const auto found = model_adapters.find(name);
    return found == model_adapters.end() ? std::string() : found->second;
  }
};

}  // namespace attendant
