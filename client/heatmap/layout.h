// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "client/heatmap/attention_maps.h"
#include "client/heatmap/figure.h"
#include "client/heatmap/text.h"

namespace attendant::client {

// A grid of maps with tokens along both axes, and a bar that explains their common colour scale.
// If the tokens have no room,
// only every second, third, ... token is named. REQUIRES: at
// least one token and one map.
Figure LayOutHeatmap(const AttentionMaps& maps, const TextRuler& ruler);

// Columns of a grid of `count` maps: about as many as rows, with full rows if possible.
int64_t GridColumns(int64_t count);

// The ticks of an axis: about `count` values from 0 to `largest` in round steps.
std::vector<double> Ticks(double largest, int count);

// The colours of map `index`, [len, len].
std::vector<Rgb> MapColors(const AttentionMaps& maps, int64_t index, float largest);

}  // namespace attendant::client
