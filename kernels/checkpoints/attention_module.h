// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "kernels/core/attention_module.h"
#include "kernels/io/json_folder.h"

namespace attendant {

struct ModuleCheckpoint {
  ModuleConfig config;    // passes Validate
  ModuleWeights weights;  // passes ValidateWeights, all values finite
};

// Reads a PyTorch attention module from a folder: its state_dict in model.safetensors (or shards),
// under PyTorch's own names, and config.json with the arguments of its constructor:
//
//   - `type`, required: "MultiheadAttention", "TransformerEncoderLayer" or "TransformerEncoder"
//   - `num_heads` of MultiheadAttention, `nhead` of the others, required
//   - `norm_first`: false when absent
//   - `activation`: "relu", also when absent, or "gelu"
//   - `layer_norm_eps`: 1e-5 when absent
//   - `final_norm_eps`, of the TransformerEncoder's `norm`: 1e-5 when absent, as of nn.LayerNorm
//   - `embed_dim`, `kdim`, `vdim`, `bias`; `d_model`, `dim_feedforward`, `num_layers`,
//     `final_norm`: follow from the tensors; a given value must agree
//
// Other fields, as dropout and batch_first, are ignored; add_bias_kv and add_zero_attn are
// UNIMPLEMENTED. NOT_FOUND without a config or weights file; INVALID_ARGUMENT, naming the file or
// tensor, the expected and the found value, for contradictions.
absl::StatusOr<ModuleCheckpoint> LoadAttentionModule(const JsonFolder& folder);

}  // namespace attendant
