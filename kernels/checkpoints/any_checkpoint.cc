// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/any_checkpoint.h"

#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {

absl::StatusOr<AnyCheckpoint> LoadAnyCheckpoint(const std::string& directory) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, ReadJsonFile(directory + "/config.json"));
  if (config.Has("type") && !config.Has("model_type")) {
    return LoadAttentionModule(config, directory);
  }
  return LoadCheckpoint(config, directory);
}

}  // namespace attendant
