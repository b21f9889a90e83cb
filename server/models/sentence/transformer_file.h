// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/io/json_file.h"
#include "kernels/io/json_folder.h"
#include "server/models/sentence/model_folder.h"

namespace attendant {

// The settings that sentence-transformers has for its Transformer in `folder`:
// sentence_bert_config.json, else the first of the names that old versions gave it by family
// (sentence_roberta_config.json and others); unset where none is there, or has a field.
// INVALID_ARGUMENT for a file that is not valid.
absl::StatusOr<std::optional<JsonNode>> ReadTransformerFile(const JsonFolder& folder);

// OK where that file of `folder` asks for nothing that would change an answer and is not computed:
// arguments for the config, the tokenizer or its calls, another output of the model, texts as
// messages of a chat template but for pairs of a cross-encoder, and outside of ColBERT lengths of
// queries or documents other than `max_text_tokens`, and query expansion. Else UNIMPLEMENTED,
// naming file and field.
absl::Status CheckTransformerFile(const ModelFolder& folder, int64_t max_text_tokens);

}  // namespace attendant
