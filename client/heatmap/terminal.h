// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "client/heatmap/attention_maps.h"
#include "client/heatmap/figure.h"

namespace attendant::client {

enum class TerminalColors {
  kNone,  // letters instead
  k256,   // the palette of xterm
  kTrue,  // 24 bits
};

// What is known of where text goes: variables of the environment, empty where they are not set.
struct TerminalEnvironment {
  bool is_terminal = false;
  std::string no_color;   // https://no-color.org
  std::string colorterm;  // "truecolor" or "24bit"
  std::string term;       // "xterm-256color"
};
TerminalColors ChooseColors(const TerminalEnvironment& environment);

// Lines of text, at most `columns` wide (at least 20): maps beside one another as far as they have
// room, then a bar that tells the scale. Short sequences get a cell of two columns for each weight,
// longer ones half a line, and where there are more tokens than columns, a cell shows the largest
// of several weights, and it says so. REQUIRES: at least one token and one map.
std::string DrawInTerminal(const AttentionMaps& maps, TerminalColors colors, int columns);

// The closest colour of xterm's palette: its 6 x 6 x 6 cube or its greys.
int PaletteColor(Rgb color);

}  // namespace attendant::client
