// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_loader.h"

#include <exception>
#include <new>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/backends/backends.h"
#include "kernels/checkpoints/any_checkpoint.h"
#include "kernels/core/base/mapped_file.h"
#include "kernels/core/status_macros.h"
#include "server/models/attention_model.h"
#include "server/models/encoder_model.h"
#include "server/models/memory/estimate.h"
#include "server/models/sentence/model_folder.h"
#include "server/threads/steady_time.h"

namespace attendant {
namespace {

// Nothing is reserved for a checkpoint that cannot be read: loading it says why. Only the CPU's
// memory is checked.
absl::StatusOr<ModelMemory::Share> ReserveMemory(const ModelSource& source,
                                                 const ModelFolder& folder, const Backend& backend,
                                                 const ModelOptions& options) {
  if (options.memory == nullptr || backend.defaults().sessions > 0) return ModelMemory::Share();
  ATTENDANT_ASSIGN_OR_RETURN(const DType dtype, ChooseDType(options.dtype, backend));
  const absl::StatusOr<MemoryEstimate> estimate = EstimateMemory(
      folder, {.dtype = dtype,
               .limits = {.max_batch_tokens = options.batcher.max_batch_tokens,
                          .max_batch_sequences = options.batcher.max_batch_sequences},
               .replicas = options.replicas,
               .merges_adapter = !options.AdapterOf(source.name).empty()});
  if (!estimate.ok()) return ModelMemory::Share();
  return options.memory->Reserve(*estimate);
}

// Reads the folder, whose JSON files have one state for all readers, and reserves `memory` for its
// model. What has been read of them is gone at the end.
absl::StatusOr<std::unique_ptr<ServableModel>> MakeModel(
    const ModelSource& source, const Backend& backend, const ModelOptions& options,
    ServerMetrics& metrics, const Executor& executor, ModelMemory::Share& memory) {
  ATTENDANT_ASSIGN_OR_RETURN(const ModelFolder folder, FindModelFolder(source.directory));
  ATTENDANT_ASSIGN_OR_RETURN(memory, ReserveMemory(source, folder, backend, options));
  ATTENDANT_ASSIGN_OR_RETURN(AnyCheckpoint checkpoint,
                             LoadAnyCheckpoint(folder.encoder, options.AdapterOf(source.name)));
  if (auto* module = std::get_if<ModuleCheckpoint>(&checkpoint)) {
    return MakeAttentionModel(source, std::move(*module), options, metrics, executor);
  }
  return MakeEncoderModel(source, folder, std::get<Checkpoint>(std::move(checkpoint)), backend,
                          options, metrics, executor);
}

absl::StatusOr<std::unique_ptr<ServableModel>> Load(const ModelSource& source,
                                                    const Backend& backend,
                                                    const ModelOptions& options,
                                                    ServerMetrics& metrics,
                                                    const Executor& executor) {
  const absl::Time start = SteadyNow();
  metrics.ForModel(source.name);  // its series are there even when the load fails
  ModelMemory::Share memory;
  const MappedReads reads;
  absl::StatusOr<std::unique_ptr<ServableModel>> made =
      MakeModel(source, backend, options, metrics, executor, memory);
  ATTENDANT_RETURN_IF_ERROR(reads.Check(made.status()));
  std::unique_ptr<ServableModel> model = *std::move(made);
  GiveBackFreedMemory();
  model->load_time = SteadyNow() - start;
  const ModelLoadInfo info = model->LoadInfo();
  memory.Resize(info.weight_bytes + info.arena_bytes);
  model->memory = std::move(memory);
  return model;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServableModel>> LoadModel(const ModelSource& source,
                                                         const Backend& backend,
                                                         const ModelOptions& options,
                                                         ServerMetrics& metrics,
                                                         const Executor& executor) {
  try {
    return Load(source, backend, options, metrics, executor);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("there is not enough memory to load the model");
  } catch (const std::system_error& error) {  // a thread is refused
    return absl::ResourceExhaustedError(absl::StrCat("cannot load the model: ", error.what()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cannot load the model: ", error.what()));
  }
}

ModelLoader CheckpointLoader(const Backend& backend, const ModelOptions& options) {
  return [&backend, options](const ModelSource& source, ServerMetrics& metrics,
                             const Executor& executor) {
    return LoadModel(source, backend, options, metrics, executor);
  };
}

}  // namespace attendant
