// SPDX-License-Identifier: Apache-2.0
// NeoBERT, in code of its own that comes with the checkpoint: Llama's block, with the norms
// before its branches, rotary positions and no biases.
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/bert_fields.h"
#include "kernels/checkpoints/families/llama/llama_block.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace neobert {
namespace {

constexpr absl::string_view kCode[] = {"chandar-lab/NeoBERT--model.NeoBERT", "model.NeoBERT"};
constexpr BertFields kFields{.activation = nullptr,
                             .max_positions = "max_length",
                             .segment_types = nullptr,
                             .epsilon = "norm_eps",
                             .default_epsilon = 1e-6};

// Refuses the options of the model's training code that are not computed here.
absl::Status CheckOptions(const JsonNode& json) {
  ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "ngpt"));
  for (const char* field : {"rms_norm", "rope"}) {
    bool is_on = true;
    ATTENDANT_RETURN_IF_ERROR(json.Read(field, is_on));
    if (!is_on) return Unsupported(json, field, "false", "true");
  }
  std::string activation = "swiglu";
  ATTENDANT_RETURN_IF_ERROR(json.Read("hidden_act", activation));
  if (absl::AsciiStrToLower(activation) == "swiglu") return absl::OkStatus();
  return Unsupported(json, "hidden_act", Quoted(activation), "SwiGLU");
}

absl::StatusOr<FamilyConfig> ReadConfig(const JsonNode& json) {
  FamilyConfig config;
  ATTENDANT_RETURN_IF_ERROR(CheckOptions(json));
  ATTENDANT_ASSIGN_OR_RETURN(config.encoder, ReadBertFields(json, kFields));
  EncoderConfig& encoder = config.encoder;
  SetLlamaBlock(encoder);
  encoder.norm_place = NormPlace::kPre;
  encoder.activation = Activation::kSilu;
  encoder.ffn = RoundUp(2 * encoder.ffn / 3, 8);  // three matrices with the weights of two
  encoder.positions = Positions::kRotary;
  config.biases = kNoBiases;
  config.qkv_by_heads = true;
  ATTENDANT_RETURN_IF_ERROR(ValidateConfig(json, encoder));
  return config;
}

}  // namespace
}  // namespace neobert

constexpr Family kNeoBert{.code = neobert::kCode,
                          .read_config = neobert::ReadConfig,
                          .names = {.prefix = "model.",
                                    .token_embedding = "encoder",
                                    .position_embedding = "",
                                    .segment_embedding = "",
                                    .embedding_norm = "",
                                    .layers = "transformer_encoder",
                                    .qkv = "qkv",
                                    .attention_output = "wo",
                                    .attention_norm = "attention_norm",
                                    .ffn_gate_up = "ffn.w12",
                                    .ffn_down = "ffn.w3",
                                    .ffn_norm = "ffn_norm",
                                    .final_norm = "layer_norm"}};

}  // namespace attendant
