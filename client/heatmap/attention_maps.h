// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attendant::client {

// Attention weights of one sequence, with their names.
struct AttentionMaps {
  std::string title;                // "minilm, layer 3"
  std::string subtitle;             // the text, or empty
  std::vector<std::string> tokens;  // [len], printable
  std::vector<std::string> names;   // [maps]: "head 0"
  std::vector<float> weights;       // [maps, len, len]; a row belongs to a token that attends

  int64_t len() const { return static_cast<int64_t>(tokens.size()); }
  int64_t maps() const { return static_cast<int64_t>(names.size()); }
  std::span<const float> map(int64_t index) const {
    const size_t values = tokens.size() * tokens.size();
    return std::span<const float>(weights).subspan(static_cast<size_t>(index) * values, values);
  }
};

// The largest weight of all maps; 1 if all weights are 0.
float LargestWeight(const AttentionMaps& maps);

// One map, the mean of all maps.
AttentionMaps Average(const AttentionMaps& maps);

}  // namespace attendant::client
