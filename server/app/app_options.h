// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "server/access/key_store.h"
#include "server/access/log_file.h"
#include "server/flags.h"
#include "server/limits/limits.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_options.h"
#include "server/tracing/export/tracer.h"

namespace attendant {

// The back end of all encoders, and how models are loaded and served.
struct ModelSetup {
  std::unique_ptr<const Backend> backend;
  ModelOptions options;
};

// Builds the back end that the flags name, and places `num_models` models on the machine. Logs
// both. Errors name the flag.
absl::StatusOr<ModelSetup> MakeModelSetup(const ServerFlags& flags, size_t num_models);

// The options alone, for a loader with a back end of its own. BackendDefaults are the values of
// flags that are left open.
ModelOptions MakeModelOptions(const ServerFlags& flags, size_t num_models);

// The files that the access flags name.
struct AccessFiles {
  std::unique_ptr<KeyStore> keys;  // null: anybody may call
  std::optional<LogFile> log;
};

// Errors name the flag.
absl::StatusOr<AccessFiles> OpenAccessFiles(const AccessFlags& flags);

// Null: no spans are made. Logs where they go, and which variables of the environment it ignores.
// `metrics` must outlive the tracer.
std::unique_ptr<Tracer> MakeTracer(const ServerFlags& flags, ServerMetrics& metrics);

// The limits of the flags. Memory limits include the share of one connection.
MemoryLimits MakeMemoryLimits(const ServerFlags& flags);
StreamLimits MakeStreamLimits(const ServerFlags& flags);

}  // namespace attendant
