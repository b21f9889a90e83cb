// SPDX-License-Identifier: Apache-2.0
#include "client/heatmap/attention_maps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace attendant::client {

float LargestWeight(const AttentionMaps& maps) {
  float largest = 0;
  for (const float weight : maps.weights) largest = std::max(largest, weight);
  return largest > 0 ? largest : 1;
}

AttentionMaps Average(const AttentionMaps& maps) {
  const size_t values = maps.tokens.size() * maps.tokens.size();
  AttentionMaps mean{
      .title = maps.title,
      .subtitle = maps.subtitle,
      .tokens = maps.tokens,
      .names = {maps.maps() == 1 ? maps.names[0] : absl::StrCat("mean of ", maps.maps(), " heads")},
      .weights = std::vector<float>(values)};
  for (int64_t map = 0; map < maps.maps(); ++map) {
    const std::span<const float> weights = maps.map(map);
    for (size_t i = 0; i < values; ++i) {
      mean.weights[i] += weights[i] / static_cast<float>(maps.maps());
    }
  }
  return mean;
}

}  // namespace attendant::client
