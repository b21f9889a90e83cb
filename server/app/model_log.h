// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/models/registry/model_status.h"
#include "server/models/repository/model_repository.h"

namespace attendant {

// Logs one line about the news of a model: for a ready model its description and its back end.
void LogModel(const ModelStatus& status, ModelNews news);

// Warns of what is not served of a model repository, and of one without any model to serve.
void LogRepository(const std::string& directory, const RepositoryContent& content);
void LogRefused(const absl::Status& status);

}  // namespace attendant
