// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "kernels/checkpoints/families/family.h"

namespace attendant::jina_bert {

// The config of Jina v2, and of what is built like it.
absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json);

}  // namespace attendant::jina_bert
