// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "server/models/sentence/model_folder.h"

namespace attendant {

// True if sentence-transformers makes each text a message of the tokenizer's chat template in
// `folder`: so it does where there is a template and no modules.json. INVALID_ARGUMENT for a
// tokenizer_config.json that is not valid.
absl::StatusOr<bool> WantsChatTemplate(const ModelFolder& folder);

// True if sentence-transformers makes each pair of texts messages of the chat template, by the
// settings of the Transformer in `folder`. For a cross-encoder. INVALID_ARGUMENT for a file that is
// not valid; UNIMPLEMENTED for a LogitScore whose settings leave it open.
absl::StatusOr<bool> PairsAreMessages(const ModelFolder& folder);

}  // namespace attendant
