// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads/max_sim.h"

#include <algorithm>
#include <cstddef>

#include "kernels/heads/head_layers.h"

namespace attendant {

float MaxSim(std::span<const float> query, std::span<const float> document, int64_t dims) {
  if (document.empty()) return 0;
  const auto width = static_cast<size_t>(dims);
  float sum = 0;
  for (size_t i = 0; i < query.size(); i += width) {
    const std::span<const float> vector = query.subspan(i, width);
    float largest = HeadDot(vector, document.data());
    for (size_t j = width; j < document.size(); j += width) {
      largest = std::max(largest, HeadDot(vector, document.data() + j));
    }
    sum += largest;
  }
  return sum;
}

}  // namespace attendant
