// SPDX-License-Identifier: Apache-2.0
// ELECTRA's discriminator and generator: BERT, of which small ones have embeddings narrower than
// `hidden_size`, and a projection between.
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace electra {
namespace {

constexpr absl::string_view kTypes[] = {"electra"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder,
                             ReadBertFields(json, {.default_embedding_width = 128}));
  // Embeddings of the same width have no projection.
  if (config.encoder.embedding_width == config.encoder.hidden) config.encoder.embedding_width = 0;
  return config;
}

}  // namespace
}  // namespace electra

constexpr Family kElectra{
    .model_types = electra::kTypes,
    .read_config = electra::ReadConfig,
    .names = {.prefix = "electra.", .embedding_projection = "embeddings_project"}};

}  // namespace attendant
