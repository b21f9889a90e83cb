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

// The output and the environment variables that say which colours it can show; empty if not set.
struct TerminalEnvironment {
  bool is_terminal = false;
  std::string no_color;   // https://no-color.org
  std::string colorterm;  // "truecolor" or "24bit"
  std::string term;       // "xterm-256color"
};
TerminalColors ChooseColors(const TerminalEnvironment& environment);

// Lines of text of at most `columns` (at least 20). Maps stand beside each other as far as they
// have room; a bar below explains the scale. In a short sequence each weight takes two columns, in
// a longer one half a line. With more tokens than columns a cell shows the largest of several
// weights, and the text says so. REQUIRES: at least one token and one map.
std::string DrawInTerminal(const AttentionMaps& maps, TerminalColors colors, int columns);

// The closest colour of xterm's palette: its 6 x 6 x 6 cube or its greys.
int PaletteColor(Rgb color);

}  // namespace attendant::client
