// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/heatmap/attention_maps.h"

namespace attendant::client {

// Maps whose rows sum to 1, and of which no two weights in a row are the same.
inline AttentionMaps SampleMaps(int maps, std::vector<std::string> tokens) {
  AttentionMaps sample{.title = "minilm, layer 3",
                       .subtitle = "a text",
                       .tokens = std::move(tokens),
                       .names = {},
                       .weights = {}};
  const auto len = static_cast<int>(sample.tokens.size());
  for (int map = 0; map < maps; ++map) {
    sample.names.push_back(absl::StrCat("head ", map));
    for (int row = 0; row < len; ++row) {
      std::vector<float> weights;
      float sum = 0;
      for (int column = 0; column < len; ++column) {
        weights.push_back(1.0f / static_cast<float>(1 + (column * 7 + row * 3 + map) % (2 * len)));
        sum += weights.back();
      }
      for (const float weight : weights) sample.weights.push_back(weight / sum);
    }
  }
  return sample;
}

inline std::vector<std::string> SampleTokens(int count) {
  std::vector<std::string> tokens = {"[CLS]"};
  for (int i = 1; i < count; ++i) tokens.push_back(absl::StrCat(i % 3 == 0 ? "##" : "", "tok", i));
  return tokens;
}

}  // namespace attendant::client
