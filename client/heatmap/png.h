// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/heatmap/figure.h"

namespace attendant::client {

// The bytes of a PNG file with `scale` pixels for one of the figure's. INVALID_ARGUMENT, with both
// numbers, when it would be too large.
absl::StatusOr<std::string> ToPng(const Figure& figure, double scale);

// An image alone, `columns` x `rows` pixels of the file for each of its own.
std::string ToPng(const Image& image, int columns, int rows);

}  // namespace attendant::client
