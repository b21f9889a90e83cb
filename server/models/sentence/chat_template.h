// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "server/models/sentence/model_folder.h"

namespace attendant {

// Whether sentence-transformers makes each text a message of the chat template of the tokenizer in
// `folder`: it does without modules.json, as soon as there is a template. INVALID_ARGUMENT for a
// tokenizer_config.json that is not valid.
absl::StatusOr<bool> WantsChatTemplate(const ModelFolder& folder);

// Whether sentence-transformers makes each pair of `folder`, a cross-encoder's, messages of the
// chat template: its settings of the Transformer say so. INVALID_ARGUMENT for a file that is not
// valid; UNIMPLEMENTED for a LogitScore whose settings leave it open.
absl::StatusOr<bool> PairsAreMessages(const ModelFolder& folder);

}  // namespace attendant
