// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/heads/sequence_classifier.h"
#include "kernels/heads/token_head.h"
#include "kernels/io/json_folder.h"

namespace attendant {

struct Checkpoint {
  EncoderConfig config;  // passes Validate
  EncoderWeights
      weights;  // every tensor there, with the shape that `config` gives it, all values finite
  std::optional<SequenceClassifier> classifier{};  // of a model with such a head
  std::vector<TokenHead> token_heads{};
  std::vector<UnreadHead> unread_heads{};
};

// Reads the folder of an encoder whose family is known (families/family.h): config.json, and the
// weights in model.safetensors or in the shards of model.safetensors.index.json. Tensors may carry
// the family's prefix, as "bert.", and the old names
// LayerNorm.gamma and LayerNorm.beta; heads are read by classifier_head.h and token_heads.h;
// tensors that none needs (position_ids, other heads) are ignored. f32 weights stay in the mapped
// files, f16, bf16 and f64 are converted. `adapter` is merged into the weights (adapters.h); empty:
// the weights without adapters.
//
// NOT_FOUND without a config or weights file; INVALID_ARGUMENT, naming the file or tensor, the
// expected and the found value, for contradictions; UNIMPLEMENTED for another architecture.
absl::StatusOr<Checkpoint> LoadCheckpoint(const JsonFolder& folder, absl::string_view adapter = {});
// The config alone.
absl::StatusOr<EncoderConfig> ReadEncoderConfig(const JsonFolder& folder);
// The bytes of weights that a load puts into another order, and so holds twice.
absl::StatusOr<int64_t> CountReorderedBytes(const JsonFolder& folder);

}  // namespace attendant
