// SPDX-License-Identifier: Apache-2.0
#include "client/heatmap/layout.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/heatmap/color_map.h"

namespace attendant::client {
namespace {

constexpr Rgb kInk{34, 34, 34};
constexpr Rgb kGrey{110, 110, 110};
constexpr Rgb kFrame{170, 170, 170};
constexpr Rgb kWhite{255, 255, 255};

constexpr double kMargin = 20;
constexpr double kTitleSize = 15, kSubtitleSize = 11.5, kNameSize = 11.5, kAxisSize = 11;
constexpr double kTitleHeight = 24, kSubtitleHeight = 20;
constexpr double kNameHeight = 20;      // above each map
constexpr double kGap = 18;             // between maps
constexpr double kTick = 4;             // from a map to its tokens
constexpr double kMaxTokenWidth = 110;  // longer ones are cut
constexpr double kMinTokenPitch = 10;   // from one token's middle to the next
constexpr double kBarGap = 24, kBarWidth = 14, kBarLabelWidth = 36, kBarNameWidth = 18;
constexpr double kMaxBarHeight = 260;
constexpr double kMinHeight = 112;      // for what is written along the side
constexpr double kMaxGridWidth = 8000;  // beyond, several weights share a pixel

// Positions and sizes of all parts.
struct Grid {
  int64_t columns = 0, rows = 0;
  double cell = 0;        // of one weight
  double side = 0;        // of a map
  double pitch = 0;       // from one map to the next beside it: its name has room too
  double token_size = 0;  // of the font
  int64_t token_step = 1;
  double token_width = 0;  // of the widest
  double left = 0, top = 0;

  double x(int64_t map) const { return left + static_cast<double>(map % columns) * pitch; }
  double y(int64_t map) const {
    return top + static_cast<double>(map / columns) * (side + kGap + kNameHeight);
  }
  double width() const { return static_cast<double>(columns) * pitch - kGap; }
  double height() const {
    return static_cast<double>(rows) * (side + kGap + kNameHeight) - kGap - kNameHeight;
  }
};

// A whole number of pixels for each weight if there is room for one: all cells then have one size.
double CellSize(int64_t len, int64_t columns) {
  const double tokens = static_cast<double>(len);
  const double small_side = columns == 1 ? 460 : columns == 2 ? 330 : 230;
  // Large enough to name every token, or every second token in a grid, up to a limit.
  const double named_side = tokens * kMinTokenPitch / (columns == 1 ? 1 : 2);
  const double side = std::clamp(named_side, small_side, 2 * small_side);
  const double cell = std::clamp(side / tokens, 1.0, columns == 1 ? 44.0 : 28.0);
  const double largest_side = kMaxGridWidth / static_cast<double>(columns);
  return cell * tokens > largest_side ? largest_side / tokens : std::floor(cell);
}

Grid MakeGrid(const AttentionMaps& maps, const TextRuler& ruler) {
  Grid grid;
  grid.columns = GridColumns(maps.maps());
  grid.rows = (maps.maps() + grid.columns - 1) / grid.columns;
  grid.cell = CellSize(maps.len(), grid.columns);
  grid.side = std::ceil(grid.cell * static_cast<double>(maps.len()));
  grid.pitch = grid.side;
  for (const std::string& name : maps.names) {
    grid.pitch = std::max(grid.pitch, ruler.Width(name, kNameSize, /*bold=*/true));
  }
  grid.pitch = std::ceil(grid.pitch) + kGap;
  grid.token_size = std::clamp(grid.cell * 0.7, 8.5, 11.5);
  grid.token_step =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(kMinTokenPitch / grid.cell)));
  for (int64_t i = 0; i < maps.len(); i += grid.token_step) {
    const double width = ruler.Width(maps.tokens[static_cast<size_t>(i)], grid.token_size);
    grid.token_width = std::max(grid.token_width, std::min(width, kMaxTokenWidth));
  }
  grid.token_width = std::ceil(grid.token_width);
  grid.left = kMargin + kAxisSize + 8 + grid.token_width + kTick;
  grid.top = kMargin + kTitleHeight + (maps.subtitle.empty() ? 0 : kSubtitleHeight) + kNameHeight;
  return grid;
}

void AddTokens(const AttentionMaps& maps, const Grid& grid, const TextRuler& ruler, int64_t map,
               Figure& figure) {
  const bool leftmost = map % grid.columns == 0;
  const bool lowest = map + grid.columns >= maps.maps();
  for (int64_t i = 0; i < maps.len(); i += grid.token_step) {
    const std::string text =
        ruler.Fit(maps.tokens[static_cast<size_t>(i)], grid.token_size, kMaxTokenWidth);
    const double middle = (static_cast<double>(i) + 0.5) * grid.cell;
    const double x = grid.x(map), y = grid.y(map);
    if (leftmost) {
      figure.labels.push_back({.text = text,
                               .x = x - kTick,
                               .y = y + middle,
                               .font_size = grid.token_size,
                               .anchor = Anchor::kEnd,
                               .color = kInk});
    }
    if (lowest) {
      figure.labels.push_back({.text = text,
                               .x = x + middle,
                               .y = y + grid.side + kTick,
                               .font_size = grid.token_size,
                               .anchor = Anchor::kEnd,
                               .upwards = true,
                               .color = kInk});
    }
  }
}

// The weights as numbers, if cells are large enough for them.
void AddNumbers(const AttentionMaps& maps, const Grid& grid, int64_t map, float largest,
                Figure& figure) {
  constexpr double kMinCell = 28;
  constexpr int64_t kMaxMaps = 4;  // beyond, they are more noise than news
  if (grid.cell < kMinCell || maps.maps() > kMaxMaps) return;
  const std::span<const float> weights = maps.map(map);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] < 0.005f) continue;
    const double row = static_cast<double>(static_cast<int64_t>(i) / maps.len());
    const double column = static_cast<double>(static_cast<int64_t>(i) % maps.len());
    const float share = weights[i] / largest;
    figure.labels.push_back({.text = absl::StrFormat("%.2f", weights[i]),
                             .x = grid.x(map) + (column + 0.5) * grid.cell,
                             .y = grid.y(map) + (row + 0.5) * grid.cell,
                             .font_size = 9,
                             .anchor = Anchor::kMiddle,
                             .color = share < 0.6f ? kWhite : kInk});
  }
}

void AddMap(const AttentionMaps& maps, const Grid& grid, const TextRuler& ruler, int64_t map,
            float largest, Figure& figure) {
  const double x = grid.x(map), y = grid.y(map);
  figure.images.push_back({.x = x,
                           .y = y,
                           .width = grid.side,
                           .height = grid.side,
                           .columns = maps.len(),
                           .rows = maps.len(),
                           .pixels = MapColors(maps, map, largest)});
  figure.rectangles.push_back(
      {.x = x, .y = y, .width = grid.side, .height = grid.side, .color = kFrame, .filled = false});
  figure.labels.push_back({.text = maps.names[static_cast<size_t>(map)],
                           .x = x,
                           .y = y - kNameHeight / 2 - 1,
                           .font_size = kNameSize,
                           .bold = true,
                           .color = kInk});
  AddTokens(maps, grid, ruler, map, figure);
  AddNumbers(maps, grid, map, largest, figure);
}

void AddBar(const Grid& grid, float largest, Figure& figure) {
  constexpr int64_t kBarColors = 256;
  const double height = std::clamp(grid.height(), kMinHeight, kMaxBarHeight);
  const double x = grid.left + grid.width() + kBarGap, y = grid.top;
  Image bar{.x = x,
            .y = y,
            .width = kBarWidth,
            .height = height,
            .columns = 1,
            .rows = kBarColors,
            .pixels = {}};
  for (int64_t i = kBarColors - 1; i >= 0; --i) {
    bar.pixels.push_back(Viridis(static_cast<float>(i) / (kBarColors - 1)));
  }
  figure.images.push_back(std::move(bar));
  figure.rectangles.push_back(
      {.x = x, .y = y, .width = kBarWidth, .height = height, .color = kFrame, .filled = false});
  for (const double tick : Ticks(static_cast<double>(largest), 5)) {
    const double at = y + height * (1 - tick / static_cast<double>(largest));
    figure.rectangles.push_back(
        {.x = x + kBarWidth + 1, .y = at - 0.5, .width = kTick, .height = 1, .color = kGrey});
    figure.labels.push_back({.text = absl::StrCat(tick),
                             .x = x + kBarWidth + kTick + 4,
                             .y = at,
                             .font_size = 10,
                             .color = kInk});
  }
  figure.labels.push_back({.text = "attention weight",
                           .x = x + kBarWidth + kBarLabelWidth + kBarNameWidth / 2,
                           .y = y + height / 2,
                           .font_size = 10,
                           .anchor = Anchor::kMiddle,
                           .upwards = true,
                           .color = kGrey});
}

void AddTitles(const AttentionMaps& maps, const Grid& grid, const TextRuler& ruler,
               Figure& figure) {
  const double width = figure.width - 2 * kMargin;
  figure.labels.push_back({.text = ruler.Fit(maps.title, kTitleSize * 1.1, width),
                           .x = kMargin,
                           .y = kMargin + kTitleHeight / 2 - 4,
                           .font_size = kTitleSize,
                           .bold = true,
                           .color = kInk});
  if (!maps.subtitle.empty()) {
    figure.labels.push_back({.text = ruler.Fit(maps.subtitle, kSubtitleSize, width),
                             .x = kMargin,
                             .y = kMargin + kTitleHeight + kSubtitleHeight / 2 - 4,
                             .font_size = kSubtitleSize,
                             .color = kGrey});
  }
  figure.labels.push_back({.text = "token that attends",
                           .x = kMargin + kAxisSize / 2,
                           .y = grid.top + std::max(grid.height(), kMinHeight) / 2,
                           .font_size = kAxisSize,
                           .anchor = Anchor::kMiddle,
                           .upwards = true,
                           .color = kGrey});
  figure.labels.push_back({.text = "token it attends to",
                           .x = grid.left + grid.width() / 2,
                           .y = figure.height - kMargin - kAxisSize / 2,
                           .font_size = kAxisSize,
                           .anchor = Anchor::kMiddle,
                           .color = kGrey});
}

}  // namespace

int64_t GridColumns(int64_t count) {
  const auto square = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  for (int64_t columns = square; columns <= square + 1; ++columns) {
    if (count % columns == 0) return columns;
  }
  return count <= 3 ? count : square;
}

std::vector<double> Ticks(double largest, int count) {
  const double rough = largest / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double round : {1.0, 2.0, 2.5, 5.0}) {
    if (rough <= round * power) {
      step = round * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (int i = 0; i * step <= largest * 1.0001; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<Rgb> MapColors(const AttentionMaps& maps, int64_t index, float largest) {
  std::vector<Rgb> colors;
  for (const float weight : maps.map(index)) colors.push_back(Viridis(weight / largest));
  return colors;
}

Figure LayOutHeatmap(const AttentionMaps& maps, const TextRuler& ruler) {
  const Grid grid = MakeGrid(maps, ruler);
  const float largest = LargestWeight(maps);
  Figure figure;
  figure.title = absl::StrCat("Attention weights: ", maps.title);
  const double right =
      grid.left + grid.width() + kBarGap + kBarWidth + kBarLabelWidth + kBarNameWidth;
  const double title = ruler.Width(maps.title, kTitleSize, /*bold=*/true) + kMargin;
  const double subtitle = std::min(ruler.Width(maps.subtitle, kSubtitleSize), 420.0) + kMargin;
  figure.width = std::ceil(std::max({right, title, subtitle}) + kMargin);
  const double bottom =
      std::max(grid.height(), kMinHeight) + kTick + grid.token_width + 8 + kAxisSize;
  figure.height = std::ceil(grid.top + bottom + kMargin);
  for (int64_t map = 0; map < maps.maps(); ++map) {
    AddMap(maps, grid, ruler, map, largest, figure);
  }
  AddBar(grid, largest, figure);
  AddTitles(maps, grid, ruler, figure);
  return figure;
}

}  // namespace attendant::client
