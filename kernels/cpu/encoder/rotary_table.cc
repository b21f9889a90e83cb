// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/rotary_table.h"

#include <cmath>
#include <cstddef>

namespace attendant::cpu {

RotaryTable::RotaryTable(const Rotary& rotary, int64_t positions, int64_t head_dim)
    : pairs_(head_dim / 2), values_(static_cast<size_t>(positions * head_dim)) {
  for (int64_t i = 0; i < pairs_; ++i) {
    // Rates and angles are rounded to f32, as the models were trained with them.
    const double exponent = -2 * static_cast<double>(i) / static_cast<double>(head_dim);
    const auto rate = static_cast<float>(rotary.frequency_scale * std::pow(rotary.base, exponent));
    for (int64_t position = 0; position < positions; ++position) {
      const double angle = static_cast<double>(static_cast<float>(position) * rate);
      const auto at = static_cast<size_t>(position * head_dim + i);
      values_[at] = static_cast<float>(std::cos(angle));
      values_[at + static_cast<size_t>(pairs_)] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace attendant::cpu
