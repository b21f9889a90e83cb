// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/models/model_status.h"

namespace attendant {

// Logs one line about a model's new state: for a ready model its description and its back end.
void LogModel(const ModelStatus& status);

}  // namespace attendant
