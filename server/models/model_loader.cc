// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_loader.h"

#include <malloc.h>

#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/any_checkpoint.h"
#include "server/models/attention_model.h"
#include "server/models/encoder_model.h"

namespace attendant {
namespace {

// The allocator keeps the memory that loading freed, for later loads. There are none.
void GiveBackFreedMemory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

absl::StatusOr<std::unique_ptr<ServableModel>> MakeModel(
    const ModelSource& source, AnyCheckpoint checkpoint, const Backend& backend,
    const ModelOptions& options, ServerMetrics& metrics, const Executor& executor) {
  if (auto* module = std::get_if<ModuleCheckpoint>(&checkpoint)) {
    return MakeAttentionModel(source.name, std::move(*module), options, metrics, executor);
  }
  return MakeEncoderModel(source, std::get<Checkpoint>(std::move(checkpoint)), backend, options,
                          metrics, executor);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServableModel>> LoadModel(const ModelSource& source,
                                                         const Backend& backend,
                                                         const ModelOptions& options,
                                                         ServerMetrics& metrics,
                                                         const Executor& executor) {
  const absl::Time start = absl::Now();
  metrics.ForModel(source.name);  // its series are there even when the load fails
  ATTENDANT_ASSIGN_OR_RETURN(AnyCheckpoint checkpoint, LoadAnyCheckpoint(source.directory));
  ATTENDANT_ASSIGN_OR_RETURN(
      std::unique_ptr<ServableModel> model,
      MakeModel(source, std::move(checkpoint), backend, options, metrics, executor));
  GiveBackFreedMemory();
  model->load_time = absl::Now() - start;
  model->metrics->SetLoaded(model->LoadInfo());
  return model;
}

ModelLoader CheckpointLoader(const Backend& backend, const ModelOptions& options) {
  return [&backend, options](const ModelSource& source, ServerMetrics& metrics,
                             const Executor& executor) {
    return LoadModel(source, backend, options, metrics, executor);
  };
}

}  // namespace attendant
