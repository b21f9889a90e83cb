// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/heatmap/figure.h"

namespace attendant::client {

// The bytes of a PNG file with `scale` pixels for each CSS pixel of the figure. INVALID_ARGUMENT,
// with both numbers, if the picture would be too large.
absl::StatusOr<std::string> ToPng(const Figure& figure, double scale);

// An image alone. Each pixel of it takes `columns` x `rows` pixels of the file.
std::string ToPng(const Image& image, int columns, int rows);

}  // namespace attendant::client
