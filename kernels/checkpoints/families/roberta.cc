// SPDX-License-Identifier: Apache-2.0
// RoBERTa, CamemBERT and XLM-RoBERTa: BERT whose token n has position n + pad_token_id + 1. (In
// transformers a padding token inside a text has the position pad_token_id and does not count. Here
// it is a token as any other: clients leave padding out or mask it.)
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace roberta {
namespace {

constexpr absl::string_view kTypes[] = {"camembert", "roberta", "xlm-roberta"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, {}));
  ATTENDANT_RETURN_IF_ERROR(ReadPositionsBehindPadding(json, config));
  return config;
}

}  // namespace
}  // namespace roberta

constexpr Family kRoberta{.model_types = roberta::kTypes,
                          .read_config = roberta::ReadConfig,
                          .names = {.prefix = "roberta."}};

}  // namespace attendant
