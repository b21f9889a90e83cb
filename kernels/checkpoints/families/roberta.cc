// SPDX-License-Identifier: Apache-2.0
// RoBERTa, CamemBERT and XLM-RoBERTa: BERT whose token n has position n + pad_token_id + 1. (In
// transformers a padding token inside a text has the position pad_token_id and does not count. Here
// it is a token as any other: clients leave padding out or mask it.)
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace roberta {
namespace {

constexpr absl::string_view kTypes[] = {"camembert", "roberta", "xlm-roberta"};

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, {}));
  int64_t padding_id = 1;
  ATTENDANT_RETURN_IF_ERROR(json.Read("pad_token_id", padding_id));
  if (padding_id < 0 || padding_id >= config.encoder.max_positions - 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        json.where(), ": `pad_token_id` is ", padding_id, ", it must be from 0 to ",
        config.encoder.max_positions - 2, ", below `max_position_embeddings` less one"));
  }
  config.first_position = padding_id + 1;
  config.encoder.max_positions -= config.first_position;
  return config;
}

}  // namespace
}  // namespace roberta

constexpr Family kRoberta{.model_types = roberta::kTypes,
                          .read_config = roberta::ReadConfig,
                          .names = {.prefix = "roberta."}};

}  // namespace attendant
