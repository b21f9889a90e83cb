// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace bert {
namespace {

constexpr absl::string_view kTypes[] = {"bert"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, {}));
  return config;
}

}  // namespace
}  // namespace bert

constexpr Family kBert{
    .model_types = bert::kTypes, .read_config = bert::ReadConfig, .names = {.prefix = "bert."}};

}  // namespace attendant
