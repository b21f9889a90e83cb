// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "client/heatmap/figure.h"

namespace attendant::client {

// An SVG document. Labels stay text; images are embedded as PNG.
std::string ToSvg(const Figure& figure);

// `text` for the inside of an XML element or attribute. REQUIRES: `text` is printable.
std::string EscapeXml(absl::string_view text);

}  // namespace attendant::client
