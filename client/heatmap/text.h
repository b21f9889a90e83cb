// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant::client {

// Fonts are tried in this order, then whatever the system has that knows a character. DejaVu Sans
// is wide: what has room in it has room in the others.
inline constexpr char kFontFamilies[] = "DejaVu Sans, Verdana, Arial, sans-serif";

// From a line's middle, halfway up its capitals, down to the baseline, as a share of the font's
// size.
inline constexpr double kBaselineBelowMiddle = 0.36;

// How wide text is when it is drawn. Thread-compatible.
class TextRuler {
 public:
  TextRuler();
  ~TextRuler();

  // In pixels.
  double Width(absl::string_view text, double font_size, bool bold = false) const;

  // `text` cut so that it is at most `max_width` wide, … in place of what is missing.
  std::string Fit(absl::string_view text, double font_size, double max_width) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `text` with U+FFFD in place of what has no picture, or would act on a terminal or break XML:
// controls, line ends, directional marks, bytes that are no UTF-8.
std::string Printable(absl::string_view text);

// Columns that printable text takes in a terminal.
int DisplayWidth(absl::string_view text);

// `text` cut to at most `columns` of them, with … as the last one where something is missing.
std::string FitColumns(absl::string_view text, int columns);

// The characters of printable text, each with what combines with it.
std::vector<std::string> SplitCharacters(absl::string_view text);

}  // namespace attendant::client
