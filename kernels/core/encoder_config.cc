// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/encoder_config.h"

#include "kernels/core/status_macros.h"
#include "kernels/core/weight_checks.h"

namespace attendant {

absl::Status Validate(const EncoderConfig& config) {
  ATTENDANT_RETURN_IF_ERROR(CheckBounds({{"layers", config.layers, kMaxLayers},
                                         {"heads", config.heads, kMaxWidth},
                                         {"hidden", config.hidden, kMaxWidth},
                                         {"ffn", config.ffn, kMaxWidth},
                                         {"vocab", config.vocab, kMaxRows},
                                         {"max_positions", config.max_positions, kMaxRows},
                                         {"segment_types", config.segment_types, kMaxRows}}));
  ATTENDANT_RETURN_IF_ERROR(CheckHeadsDivide(config.hidden, config.heads));
  ATTENDANT_RETURN_IF_ERROR(CheckEpsilon(config.layer_norm_epsilon));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("token_embedding", config.vocab, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(
      CheckWeightSize("position_embedding", config.max_positions, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(
      CheckWeightSize("segment_embedding", config.segment_types, config.hidden));
  ATTENDANT_RETURN_IF_ERROR(CheckWeightSize("fused qkv weight", 3 * config.hidden, config.hidden));
  return CheckWeightSize("ffn_up", config.ffn, config.hidden);
}

}  // namespace attendant
