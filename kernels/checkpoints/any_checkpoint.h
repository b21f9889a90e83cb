// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/checkpoints/attention_module.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/io/json_folder.h"

namespace attendant {

using AnyCheckpoint = std::variant<Checkpoint, ModuleCheckpoint>;

// Reads a folder as LoadAttentionModule does when its config.json has `type` and no `model_type`,
// else as LoadCheckpoint does. Errors are those of the two, and INVALID_ARGUMENT
// for an attention module with an adapter.
absl::StatusOr<AnyCheckpoint> LoadAnyCheckpoint(const JsonFolder& folder,
                                                absl::string_view adapter = {});

}  // namespace attendant
