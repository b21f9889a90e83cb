// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/token_scales.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace attendant {

void WriteTokenScales(const PackedBatch& batch, int64_t dropped_token, float* scales) {
  for (int64_t i = 0; i < batch.batch(); ++i) {
    const int64_t len = batch.len(i);
    const std::span<const int32_t> ids = batch.token_ids().subspan(
        static_cast<size_t>(batch.seq_start(i)), static_cast<size_t>(len));
    const int64_t kept = len - std::count(ids.begin(), ids.end(), dropped_token);
    const float scale = static_cast<float>(len) / static_cast<float>(std::max<int64_t>(1, kept));
    scales = std::transform(ids.begin(), ids.end(), scales,
                            [=](int32_t id) { return id == dropped_token ? 0 : scale; });
  }
}

}  // namespace attendant
