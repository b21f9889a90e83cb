// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/core/attention_module.h"

// The modules' references: plain loops with sums in double.
namespace attendant::attention::reference {

// REQUIRES of both: weights fit the config, and the module's Measure accepted the call.
void MultiHeadAttention(const ModuleConfig& config, const MultiHeadWeights& weights,
                        const Call& call, const Outputs& outputs);
void TransformerEncoder(const ModuleConfig& config, const ModuleWeights& weights, const Call& call,
                        const Outputs& outputs);

}  // namespace attendant::attention::reference
