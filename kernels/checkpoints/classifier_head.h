// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/heads/sequence_classifier.h"
#include "kernels/io/json_folder.h"

namespace attendant {

class TensorStore;

// The activation of the scores that sentence-transformers names by a class of PyTorch in `field` of
// `config`; nullopt where the field is not there. UNIMPLEMENTED for other classes than Identity,
// Sigmoid and Softmax.
absl::StatusOr<std::optional<ScoreActivation>> ReadScoreActivation(const JsonNode& config,
                                                                   const char* field);

// The head of a checkpoint whose config.json has a sequence classifier of transformers first in
// `architectures`; nullopt for another architecture. `hidden` is the encoder's. The activation of
// the scores is the config's for cross-encoders of sentence-transformers, else that of
// transformers' pipeline. INVALID_ARGUMENT, naming the field or tensor and both numbers, for what
// is missing or contradictory; UNIMPLEMENTED for an option that is not computed.
absl::StatusOr<std::optional<SequenceClassifier>> ReadSequenceClassifier(
    const JsonNode& config, int64_t hidden, const std::string& directory, TensorStore& store);

// The head of a folder with LogitScore: the logit of a word behind the last token, or how much it
// is above that of another word. Of the language model's head only these rows are read; they are
// those of the token embedding where none are stored. Nullopt for other folders. INVALID_ARGUMENT,
// naming file and field or tensor, for what is missing or contradictory; UNIMPLEMENTED for another
// language model than Llama, Mistral, Qwen2 and Qwen3, and for another input of the module.
absl::StatusOr<std::optional<SequenceClassifier>> ReadWordClassifier(const JsonNode& config,
                                                                     const JsonFolder& folder,
                                                                     const EncoderWeights& weights,
                                                                     const TensorStore& store);

}  // namespace attendant
