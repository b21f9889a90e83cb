// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "client/heatmap/figure.h"

namespace attendant::client {

// An SVG document: text stays text, images are PNGs inside it.
std::string ToSvg(const Figure& figure);

// Text inside XML's elements and attributes. REQUIRES: printable.
std::string EscapeXml(absl::string_view text);

}  // namespace attendant::client
