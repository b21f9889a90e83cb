// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attendant::client {

struct Rgb {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;

  friend bool operator==(const Rgb&, const Rgb&) = default;
};

// A picture as lists of its parts. Images are drawn first, on white, then rectangles, then labels.
// Lengths are CSS pixels from the upper left corner.
struct Image {
  double x = 0, y = 0, width = 0, height = 0;
  int64_t columns = 0, rows = 0;
  std::vector<Rgb> pixels;  // [rows, columns]; each is a rectangle of one colour
};

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
  Rgb color;
  bool filled = true;  // else a line of one pixel, just outside
};

enum class Anchor { kStart, kMiddle, kEnd };

struct Label {
  std::string text;     // UTF-8, printable
  double x = 0, y = 0;  // the anchor, halfway up the text
  double font_size = 0;
  Anchor anchor = Anchor::kStart;
  bool upwards = false;  // turned to read from below to above
  bool bold = false;
  Rgb color;
};

struct Figure {
  double width = 0, height = 0;
  std::string title;  // the alternative text
  std::vector<Image> images;
  std::vector<Rectangle> rectangles;
  std::vector<Label> labels;
};

}  // namespace attendant::client
