// SPDX-License-Identifier: Apache-2.0
// ELECTRA's discriminator. Small ones have embeddings narrower than `hidden_size`, and a projection
// between: those are refused by the field's name.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace electra {
namespace {

constexpr absl::string_view kTypes[] = {"electra"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, {}));
  constexpr int64_t kDefaultEmbeddingSize = 128;
  if (!json.Has("embedding_size") && config.encoder.hidden != kDefaultEmbeddingSize) {
    return Unsupported(json, "embedding_size", absl::StrCat(kDefaultEmbeddingSize, " by default"),
                       absl::StrCat(config.encoder.hidden));
  }
  return config;
}

}  // namespace
}  // namespace electra

constexpr Family kElectra{.model_types = electra::kTypes,
                          .read_config = electra::ReadConfig,
                          .names = {.prefix = "electra."}};

}  // namespace attendant
