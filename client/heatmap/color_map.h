// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/heatmap/figure.h"

namespace attendant::client {

// The colour of a share of the largest value, from 0 (dark blue) to 1 (yellow). Equal steps look
// equal, in grey too. Shares outside are clamped; NaN counts as 0.
Rgb Viridis(float share);

}  // namespace attendant::client
