// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/heads/sequence_classifier.h"
#include "kernels/io/json_folder.h"
#include "server/models/sentence/model_folder.h"

namespace attendant {

// True if `modules`, the modules.json of `root`, is of a CrossEncoder of sentence-transformers 6: a
// Transformer and LogitScore, or a Transformer alone and the name of the class in
// config_sentence_transformers.json. INVALID_ARGUMENT for a file that is not valid.
absl::StatusOr<bool> IsCrossEncoderChain(const JsonFolder& root, const JsonNode& modules);

// Gives `classifier` the activation of scores that such a folder names; leaves it as it is for
// other folders. UNIMPLEMENTED, naming file and field, for another activation, for a default
// prompt without a chat template, which is not put before pairs, and for a folder whose
// `classifier` is not there.
absl::Status ReadCrossEncoder(const ModelFolder& folder,
                              std::optional<SequenceClassifier>& classifier);

}  // namespace attendant
