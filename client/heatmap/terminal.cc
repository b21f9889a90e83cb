// SPDX-License-Identifier: Apache-2.0
#include "client/heatmap/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/heatmap/color_map.h"
#include "client/heatmap/text.h"

namespace attendant::client {
namespace {

constexpr int kMinColumns = 20;
constexpr int kMaxRowLabel = 16, kMaxColumnLabel = 10;
constexpr int kGapColumns = 3;  // between maps
constexpr int kBarColumns = 24;
constexpr char kLetters[] = " .:-=+*#%@";  // from 0 to the largest weight
constexpr char kReset[] = "\x1b[0m";

std::string Pad(const std::string& text, int columns) {
  return absl::StrCat(
      text, std::string(static_cast<size_t>(std::max(0, columns - DisplayWidth(text))), ' '));
}

// The form in which maps become lines.
struct Drawing {
  const AttentionMaps& maps;
  TerminalColors colors;
  float largest = 1;
  bool wide = false;      // a weight is two columns and a line; else a column and half a line
  int64_t bin = 1;        // tokens that share a cell
  int64_t cells = 0;      // of a row
  int label_columns = 0;  // of row labels
  int map_columns = 0;
  int64_t across = 1;  // maps beside one another

  // Two rows of cells are one line in colours; letters cannot be cut in half.
  int64_t rows_in_line() const { return wide || colors == TerminalColors::kNone ? 1 : 2; }
  // The largest weight that a cell stands for; 0 below the last row.
  float Cell(int64_t map, int64_t row, int64_t column) const;
};

float Drawing::Cell(int64_t map, int64_t row, int64_t column) const {
  const std::span<const float> weights = maps.map(map);
  float most = 0;
  for (int64_t i = row * bin; i < std::min((row + 1) * bin, maps.len()); ++i) {
    for (int64_t j = column * bin; j < std::min((column + 1) * bin, maps.len()); ++j) {
      most = std::max(most, weights[static_cast<size_t>(i * maps.len() + j)]);
    }
  }
  return most;
}

Drawing Plan(const AttentionMaps& maps, TerminalColors colors, int columns) {
  Drawing drawing{.maps = maps, .colors = colors, .largest = LargestWeight(maps)};
  const int usable = std::max(columns, kMinColumns);
  for (const std::string& token : maps.tokens) {
    drawing.label_columns = std::max(drawing.label_columns, DisplayWidth(token));
  }
  drawing.label_columns = std::min({drawing.label_columns, kMaxRowLabel, usable / 3});
  const int64_t room = usable - drawing.label_columns - 1;
  drawing.wide = 2 * maps.len() <= room;
  drawing.bin = drawing.wide ? 1 : (maps.len() + room - 1) / room;
  drawing.cells = (maps.len() + drawing.bin - 1) / drawing.bin;
  drawing.map_columns = static_cast<int>(drawing.cells) * (drawing.wide ? 2 : 1);
  int name_columns = drawing.map_columns;
  for (const std::string& name : maps.names) {
    name_columns = std::max(name_columns, DisplayWidth(name));
  }
  drawing.map_columns = static_cast<int>(std::min<int64_t>(name_columns, room));
  drawing.across = std::clamp<int64_t>((room + kGapColumns) / (drawing.map_columns + kGapColumns),
                                       1, maps.maps());
  return drawing;
}

std::string Paint(int layer, Rgb color, TerminalColors colors) {  // 38: letters, 48: behind them
  if (colors == TerminalColors::k256) {
    return absl::StrFormat("\x1b[%d;5;%dm", layer, PaletteColor(color));
  }
  return absl::StrFormat("\x1b[%d;2;%d;%d;%dm", layer, color.red, color.green, color.blue);
}

char Letter(float share) {
  constexpr int kLast = sizeof(kLetters) - 2;
  return kLetters[std::clamp(static_cast<int>(std::lround(share * kLast)), 0, kLast)];
}

// The part of one map in a line that begins with row `row` of its cells.
std::string MapLine(const Drawing& drawing, int64_t map, int64_t row) {
  std::string line;
  for (int64_t column = 0; column < drawing.cells; ++column) {
    const float share = drawing.Cell(map, row, column) / drawing.largest;
    if (drawing.colors == TerminalColors::kNone) {
      line.append(drawing.wide ? 2 : 1, Letter(share));
    } else if (drawing.wide) {
      absl::StrAppend(&line, Paint(48, Viridis(share), drawing.colors), "  ");
    } else {
      absl::StrAppend(&line, Paint(38, Viridis(share), drawing.colors));
      if (row + 1 < drawing.cells) {
        const float below = drawing.Cell(map, row + 1, column) / drawing.largest;
        absl::StrAppend(&line, Paint(48, Viridis(below), drawing.colors));
      }
      absl::StrAppend(&line, "▀");
    }
  }
  if (drawing.colors != TerminalColors::kNone) line += kReset;
  const auto drawn = static_cast<int>(drawing.cells) * (drawing.wide ? 2 : 1);
  return absl::StrCat(line, std::string(static_cast<size_t>(drawing.map_columns - drawn), ' '));
}

// The tokens above a map, written downwards and ending at the map.
std::vector<std::string> ColumnLabels(const Drawing& drawing) {
  std::vector<std::vector<std::string>> labels;
  size_t height = 0;
  for (const std::string& token : drawing.maps.tokens) {
    labels.push_back(SplitCharacters(FitColumns(token, kMaxColumnLabel)));
    height = std::max(height, labels.back().size());
  }
  std::vector<std::string> lines(height);
  for (size_t line = 0; line < height; ++line) {
    for (const std::vector<std::string>& label : labels) {
      const size_t missing = height - label.size();
      lines[line] += Pad(line < missing ? "" : label[line - missing], 2);
    }
    lines[line] = Pad(lines[line], drawing.map_columns);
  }
  return lines;
}

// For cells narrower than letters: the number of every tenth token, counted from 0.
std::string ColumnNumbers(const Drawing& drawing) {
  std::string line;
  for (int64_t cell = 0; cell < drawing.cells; cell += 10) {
    const std::string number = absl::StrCat(cell * drawing.bin);
    if (cell + static_cast<int64_t>(number.size()) > drawing.cells) break;
    line = Pad(line, static_cast<int>(cell)) + number;
  }
  return Pad(line, drawing.map_columns);
}

// Maps [first, last) side by side, with their titles and tokens.
void AppendMaps(const Drawing& drawing, int64_t first, int64_t last, std::string& out) {
  const auto append_line = [&](const std::string& label, auto part) {
    std::string line = Pad(label, drawing.label_columns + 1);
    for (int64_t map = first; map < last; ++map) {
      absl::StrAppend(&line, part(map), map + 1 < last ? std::string(kGapColumns, ' ') : "");
    }
    if (drawing.colors == TerminalColors::kNone || line.find('\x1b') == std::string::npos) {
      line.erase(line.find_last_not_of(' ') + 1);
    }
    absl::StrAppend(&out, line, "\n");
  };
  append_line("", [&](int64_t map) {
    const std::string& name = drawing.maps.names[static_cast<size_t>(map)];
    return Pad(FitColumns(name, drawing.map_columns), drawing.map_columns);
  });
  const std::vector<std::string> above =
      drawing.wide ? ColumnLabels(drawing) : std::vector<std::string>{ColumnNumbers(drawing)};
  for (const std::string& line : above) {
    append_line("", [&](int64_t) { return line; });
  }
  for (int64_t row = 0; row < drawing.cells; row += drawing.rows_in_line()) {
    const std::string& token = drawing.maps.tokens[static_cast<size_t>(row * drawing.bin)];
    append_line(FitColumns(token, drawing.label_columns),
                [&](int64_t map) { return MapLine(drawing, map, row); });
  }
}

std::string Bar(const Drawing& drawing) {
  std::string bar;
  for (int i = 0; i < kBarColumns; ++i) {
    const float share = static_cast<float>(i) / (kBarColumns - 1);
    if (drawing.colors == TerminalColors::kNone) {
      bar += Letter(share);
    } else {
      absl::StrAppend(&bar, Paint(48, Viridis(share), drawing.colors), " ");
    }
  }
  if (drawing.colors != TerminalColors::kNone) bar += kReset;
  return absl::StrFormat(
      "0 %s %.3g\n", drawing.colors == TerminalColors::kNone ? absl::StrCat("[", bar, "]") : bar,
      drawing.largest);
}

}  // namespace

int PaletteColor(Rgb color) {
  constexpr int kLevels[] = {0, 95, 135, 175, 215, 255};
  const int parts[] = {color.red, color.green, color.blue};
  int cube[3];
  int cube_distance = 0;
  for (int i = 0; i < 3; ++i) {
    const auto nearest = std::min_element(
        std::begin(kLevels), std::end(kLevels),
        [&](int a, int b) { return std::abs(a - parts[i]) < std::abs(b - parts[i]); });
    cube[i] = static_cast<int>(nearest - kLevels);
    cube_distance += (*nearest - parts[i]) * (*nearest - parts[i]);
  }
  const int mean = (parts[0] + parts[1] + parts[2]) / 3;
  const int grey = std::clamp((mean - 3) / 10, 0, 23);
  int grey_distance = 0;
  for (const int part : parts) grey_distance += (8 + 10 * grey - part) * (8 + 10 * grey - part);
  if (grey_distance < cube_distance) return 232 + grey;
  return 16 + 36 * cube[0] + 6 * cube[1] + cube[2];
}

TerminalColors ChooseColors(const TerminalEnvironment& environment) {
  if (!environment.is_terminal || !environment.no_color.empty() || environment.term == "dumb") {
    return TerminalColors::kNone;
  }
  if (environment.colorterm == "truecolor" || environment.colorterm == "24bit") {
    return TerminalColors::kTrue;
  }
  return absl::StrContains(environment.term, "256color") ? TerminalColors::k256
                                                         : TerminalColors::kNone;
}

std::string DrawInTerminal(const AttentionMaps& maps, TerminalColors colors, int columns) {
  const Drawing drawing = Plan(maps, colors, columns);
  const int usable = std::max(columns, kMinColumns);
  std::string out = absl::StrCat(FitColumns(maps.title, usable), "\n");
  if (!maps.subtitle.empty()) absl::StrAppend(&out, FitColumns(maps.subtitle, usable), "\n");
  for (int64_t first = 0; first < maps.maps(); first += drawing.across) {
    absl::StrAppend(&out, "\n");
    AppendMaps(drawing, first, std::min(first + drawing.across, maps.maps()), out);
  }
  absl::StrAppend(&out, "\nA row is a token that attends.\n");
  if (drawing.bin > 1) {
    absl::StrAppendFormat(&out, "A cell is the largest of %d x %d weights.\n", drawing.bin,
                          drawing.bin);
  }
  absl::StrAppend(&out, Bar(drawing));
  return out;
}

}  // namespace attendant::client
