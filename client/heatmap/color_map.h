// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/heatmap/figure.h"

namespace attendant::client {

// The colour for a share of the largest value, from 0 (dark blue) to 1 (yellow): evenly spaced to
// the eye, and in grey too. What is outside is clamped, NaN is 0.
Rgb Viridis(float share);

}  // namespace attendant::client
