// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant::client {

// Fonts in the order in which they are tried; the system supplies characters that they lack. DejaVu
// Sans is the widest: a text with room in DejaVu Sans has room in the others.
inline constexpr char kFontFamilies[] = "DejaVu Sans, Verdana, Arial, sans-serif";

// The distance from the middle of a line, halfway up its capitals, to its baseline, as a share of
// the font size.
inline constexpr double kBaselineBelowMiddle = 0.36;

// Measures text as it will be drawn. Thread-compatible.
class TextRuler {
 public:
  TextRuler();
  ~TextRuler();

  // The width of `text` in pixels. `font_size`: likewise in pixels.
  double Width(absl::string_view text, double font_size, bool bold = false) const;

  // `text`, or its longest beginning with … that is at most `max_width` wide.
  std::string Fit(absl::string_view text, double font_size, double max_width) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `text` with U+FFFD in place of characters that would act on a terminal or break XML: controls,
// line ends, directional marks and invalid UTF-8.
std::string Printable(absl::string_view text);

// The columns that printable text takes in a terminal.
int DisplayWidth(absl::string_view text);

// `text`, or its longest beginning with … that takes at most `columns` columns.
std::string FitColumns(absl::string_view text, int columns);

// The characters of printable text, each with its combining marks.
std::vector<std::string> SplitCharacters(absl::string_view text);

}  // namespace attendant::client
