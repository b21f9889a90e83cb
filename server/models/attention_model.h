// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/attention/modules/module.h"
#include "kernels/checkpoints/attention_module.h"
#include "server/limits/limits.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_options.h"
#include "server/models/servable_model.h"
#include "server/threads/executor.h"

namespace attendant {

// The name, in metrics and on the wire, of the operators that need no stored weights. No model of a
// user may have this name.
inline constexpr absl::string_view kAttentionName = "attention";

// Operations in the unit in which the batcher of an attention model counts: 2^20, some 8 us on two
// cores. At least 1.
int64_t QueueUnits(int64_t operations);

// The description of a module for clients, kept while it is unloaded.
struct ModuleInfo {
  ModuleConfig config;
  DType dtype = DType::kF32;
};

// Attention as an operator: over a module's weights, or over none. Its batcher runs operations, one
// at a time on each worker.
struct AttentionModel final : ServableModel {
  ~AttentionModel() override { batcher.reset(); }  // before the module that its operations use

  AttentionModel* AsAttention() override { return this; }
  ModelLoadInfo LoadInfo() const override;

  std::unique_ptr<const attention::Module> module;  // null: the operators without stored weights
  const cpu::IsaLevel* isa = nullptr;               // null: this machine has none for attention
  AttentionLimits limits;
  int threads = 1;  // of the largest worker
};

// The operators without stored weights. Takes no time.
std::unique_ptr<AttentionModel> MakeAttention(const ModelOptions& options, ServerMetrics& metrics,
                                              const Executor& executor);

// A PyTorch attention module, whose weights are packed and that has answered once. Errors name the
// file or the option at fault.
absl::StatusOr<std::unique_ptr<AttentionModel>> MakeAttentionModel(const ModelSource& source,
                                                                   ModuleCheckpoint checkpoint,
                                                                   const ModelOptions& options,
                                                                   ServerMetrics& metrics,
                                                                   const Executor& executor);

}  // namespace attendant
