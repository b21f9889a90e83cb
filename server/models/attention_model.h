// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/attention/modules/module.h"
#include "server/models/encoder_model.h"
#include "server/models/model_registry.h"

namespace attendant {

// What the operators that need no stored weights are called, in metrics and on the wire: no model
// of a user's may have this name.
inline constexpr absl::string_view kAttentionName = "attention";

// Attention as an operator: over a module's weights, or over none. Its batcher runs operations, one
// at a time on each worker.
struct AttentionModel final : AnyModel {
  ~AttentionModel() override { batcher.reset(); }  // before the module that its operations use

  std::unique_ptr<const attention::Module> module;  // null: the operators without stored weights
  AttentionLimits limits;
  int threads = 1;  // of the largest worker
};

// The operators without stored weights. Takes no time.
std::unique_ptr<AttentionModel> MakeAttention(const ModelOptions& options, ServerMetrics& metrics,
                                              const Executor& executor);

// Whether a folder's config.json is that of a PyTorch attention module and not of an encoder.
bool HoldsAttentionModule(const std::string& directory);

// A folder of a PyTorch attention module, whose weights are packed and that has answered once.
// Errors name the file or the option at fault.
absl::StatusOr<std::unique_ptr<AttentionModel>> LoadAttentionModel(const ModelSource& source,
                                                                   const ModelOptions& options,
                                                                   ServerMetrics& metrics,
                                                                   const Executor& executor);

}  // namespace attendant
