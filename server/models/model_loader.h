// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_options.h"
#include "server/models/servable_model.h"
#include "server/threads/executor.h"

namespace attendant {

// Makes a model that is ready to serve; a test gives its own.
using ModelLoader = std::function<absl::StatusOr<std::unique_ptr<ServableModel>>(
    const ModelSource& source, ServerMetrics& metrics, const Executor& executor)>;

// Loads a checkpoint's folder, an encoder or an attention module as its config.json says. The model
// has answered warm-up batches of the smallest and of the largest size. Takes seconds. Encoders
// compute on `backend`. Errors name the file or the option at fault; RESOURCE_EXHAUSTED: memory is
// short, checked before any weight is read.
absl::StatusOr<std::unique_ptr<ServableModel>> LoadModel(const ModelSource& source,
                                                         const Backend& backend,
                                                         const ModelOptions& options,
                                                         ServerMetrics& metrics,
                                                         const Executor& executor);

// LoadModel with these. `backend` must outlive the loader.
ModelLoader CheckpointLoader(const Backend& backend, const ModelOptions& options);

}  // namespace attendant
