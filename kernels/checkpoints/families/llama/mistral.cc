// SPDX-License-Identifier: Apache-2.0
// Mistral as an encoder: Llama's block without biases, whose layers may all attend to a window.
#include <cstddef>
#include <cstdint>

#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/llama/llama_block.h"
#include "kernels/checkpoints/families/rotary_fields.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace mistral {
namespace {

constexpr absl::string_view kTypes[] = {"mistral"};

// `sliding_window`: by default 4096, null for none. A token is one of those that its window counts
// where the mask is causal; else the window counts those to either side. With `layer_types`
// transformers makes a Ministral of the config, whose layers differ: where none of them is local,
// any window counts for nothing.
absl::Status ReadWindow(const JsonNode& json, EncoderConfig& config) {
  int64_t window = 4096;
  if (json.IsNull("sliding_window")) return CheckLayerTypesAreFull(json);
  for (int64_t i = 0; i < config.layers; ++i) config.local_layers.set(static_cast<size_t>(i));
  if (json.Has("layer_types")) ATTENDANT_RETURN_IF_ERROR(ReadLayerTypes(json, config));
  if (config.local_layers.none()) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(json, "sliding_window", config.causal ? 1 : 0, window));
  config.window = config.causal ? window - 1 : window;
  config.local_rotary = config.rotary;
  return ValidateConfig(json, config);
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  ATTENDANT_ASSIGN_OR_RETURN(FamilyConfig config, ReadDecoder(json, OptionalHeadDim()));
  ATTENDANT_RETURN_IF_ERROR(ReadWindow(json, config.encoder));
  return config;
}

}  // namespace
}  // namespace mistral

constexpr Family kMistral{
    .model_types = mistral::kTypes, .read_config = mistral::ReadConfig, .names = LlamaNames()};

}  // namespace attendant
