// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/any_checkpoint.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {

absl::StatusOr<AnyCheckpoint> LoadAnyCheckpoint(const JsonFolder& folder,
                                                absl::string_view adapter) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  if (config.Has("type") && !config.Has("model_type")) {
    if (adapter.empty()) return LoadAttentionModule(folder);
    return absl::InvalidArgumentError(
        absl::StrCat(folder.path(), " is an attention module, it has no adapter ", Quote(adapter)));
  }
  return LoadCheckpoint(folder, adapter);
}

}  // namespace attendant
