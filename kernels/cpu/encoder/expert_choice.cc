// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

namespace attendant::cpu {

void ChooseExperts(std::span<const float> scores, std::span<int32_t> experts,
                   std::span<float> weights) {
  for (auto to = experts.begin(); to != experts.end(); ++to) {
    int32_t best = -1;
    for (int32_t i = 0; i < std::ssize(scores); ++i) {
      if (std::find(experts.begin(), to, i) != to) continue;
      if (best < 0 || scores[static_cast<size_t>(i)] > scores[static_cast<size_t>(best)]) best = i;
    }
    *to = best;
  }
  const auto score = [&](int32_t expert) { return scores[static_cast<size_t>(expert)]; };
  const float largest = score(experts.front());
  float sum = 0;
  for (const float value : scores) sum += std::exp(value - largest);
  std::transform(experts.begin(), experts.end(), weights.begin(),
                 [&](int32_t expert) { return std::exp(score(expert) - largest) / sum; });
}

}  // namespace attendant::cpu
