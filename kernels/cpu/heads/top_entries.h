// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/heads/head.h"

// Values with their indices, of which a head keeps the largest.
namespace attendant::cpu {

struct Entry {
  int32_t index = 0;
  float value = 0;
};

// The order of entries is total: of equal values, the lower index comes first.
inline bool Larger(const Entry& a, const Entry& b) {
  return a.value != b.value ? a.value > b.value : a.index < b.index;
}

// NaN is -inf: it has no place in the order.
inline void FillEntries(std::span<const float> values, std::vector<Entry>& entries) {
  entries.clear();
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = std::isnan(values[i]) ? -std::numeric_limits<float>::infinity() : values[i];
    entries.push_back({static_cast<int32_t>(i), value});
  }
}

// The `count` largest, in no order.
inline void KeepLargest(size_t count, std::vector<Entry>& entries) {
  if (entries.size() <= count) return;
  std::nth_element(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count),
                   entries.end(), Larger);
  entries.resize(count);
}

// By their indices.
inline void WriteAscending(std::vector<Entry>& entries, HeadResult& result) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.index < b.index; });
  result.indices.clear();
  result.values.clear();
  for (const Entry& entry : entries) {
    result.indices.push_back(entry.index);
    result.values.push_back(entry.value);
  }
}

}  // namespace attendant::cpu
