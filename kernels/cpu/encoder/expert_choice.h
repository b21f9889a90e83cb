// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace attendant::cpu {

// The experts [experts_per_token] of a token with these router scores [experts]: those of the
// largest scores, the largest first, of equal ones the first. `weights` are their softmax among all
// experts. Whatever scores are NaN, different experts are chosen.
void ChooseExperts(std::span<const float> scores, std::span<int32_t> experts,
                   std::span<float> weights);

}  // namespace attendant::cpu
