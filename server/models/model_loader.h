// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/models/encoder_model.h"
#include "server/models/model_registry.h"

namespace attendant {

// A checkpoint's folder to a model that has answered warm-up batches of the smallest and of the
// largest size, on every replica of `backend`. Takes seconds. Errors name the file or the option at
// fault.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(const ModelSource& source, const Backend& backend,
                                                 const ModelOptions& options,
                                                 ServerMetrics& metrics, const Executor& executor);

// LoadModel on the back end that `options` names, or LoadAttentionModel: as the folder is.
ModelLoader CheckpointLoader(const ModelOptions& options);

}  // namespace attendant
