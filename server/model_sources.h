// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/model_options.h"

namespace attendant {

// The models that --model and --model_repository name; `repository` may be empty. INVALID_ARGUMENT
// for what is not NAME=DIR, a name that cannot be served (it is a metric label, a health service
// and a part of KServe names: 1 to 128 letters, digits, '_', '-' and '.', with neither .ids nor
// .encoder at its end), two models of one name, or a repository without a model.
absl::StatusOr<std::vector<ModelSource>> CollectModels(std::span<const std::string> models,
                                                       const std::string& repository);

}  // namespace attendant
