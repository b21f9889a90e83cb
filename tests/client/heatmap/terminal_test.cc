// SPDX-License-Identifier: Apache-2.0
#include "client/heatmap/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "client/heatmap/color_map.h"
#include "client/heatmap/text.h"
#include "tests/client/heatmap/sample_maps.h"

namespace attendant::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> LinesWithoutColours(const std::string& drawing) {
  static const std::regex escape("\x1b\\[[0-9;]*m");
  return absl::StrSplit(std::regex_replace(drawing, escape, ""), '\n');
}

TEST(TerminalTest, NoLineIsWiderThanTheTerminal) {
  for (const int len : {1, 2, 8, 25, 60, 130, 512}) {
    for (const int maps : {1, 3, 12}) {
      const AttentionMaps sample = SampleMaps(maps, SampleTokens(len));
      for (const int columns : {20, 40, 80, 200}) {
        for (const auto colors :
             {TerminalColors::kNone, TerminalColors::k256, TerminalColors::kTrue}) {
          for (const std::string& line :
               LinesWithoutColours(DrawInTerminal(sample, colors, columns))) {
            // What is said below the maps takes 41.
            EXPECT_LE(DisplayWidth(line), std::max(columns, 41)) << len << ": " << line;
          }
        }
      }
    }
  }
}

TEST(TerminalTest, PlainDrawingHasNoEscapesAndItsTokens) {
  const std::string drawing =
      DrawInTerminal(SampleMaps(2, {"[CLS]", "cat", "[SEP]"}), TerminalColors::kNone, 80);
  EXPECT_THAT(drawing, Not(HasSubstr("\x1b")));
  EXPECT_THAT(drawing, AllOf(HasSubstr("minilm, layer 3\n"), HasSubstr("head 0"),
                             HasSubstr("head 1"), HasSubstr("\ncat   "), HasSubstr("\n[SEP] ")));
}

TEST(TerminalTest, EachWeightHasItsColour) {
  const AttentionMaps maps = SampleMaps(1, {"a", "b"});
  const std::string drawing = DrawInTerminal(maps, TerminalColors::kTrue, 80);
  size_t at = 0;
  for (const float weight : maps.weights) {
    const Rgb color = Viridis(weight / LargestWeight(maps));
    const std::string cell =
        absl::StrCat("\x1b[48;2;", color.red, ";", color.green, ";", color.blue, "m  ");
    at = drawing.find(cell, at);
    ASSERT_NE(at, std::string::npos) << weight;
    at += cell.size();
  }
}

TEST(TerminalTest, LongSequencesTakeHalfLines) {
  const std::string drawing =
      DrawInTerminal(SampleMaps(1, SampleTokens(61)), TerminalColors::kTrue, 80);
  const std::vector<std::string> lines = LinesWithoutColours(drawing);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return absl::StrContains(line, "▀"); }),
            31);
  EXPECT_THAT(DrawInTerminal(SampleMaps(1, SampleTokens(300)), TerminalColors::kTrue, 80),
              HasSubstr("largest of 5 x 5 weights"));
}

TEST(TerminalTest, PaletteHasTheClosestColour) {
  EXPECT_EQ(PaletteColor({0, 0, 0}), 16);
  EXPECT_EQ(PaletteColor({255, 255, 255}), 231);
  EXPECT_EQ(PaletteColor({255, 0, 0}), 196);
  EXPECT_EQ(PaletteColor({128, 128, 128}), 244);
  EXPECT_EQ(PaletteColor(Viridis(1)), 220);
}

TEST(TerminalTest, ColoursAreWhatTheTerminalCan) {
  const auto choose = [](bool is_terminal, const char* no_color, const char* colorterm,
                         const char* term) {
    return ChooseColors(
        {.is_terminal = is_terminal, .no_color = no_color, .colorterm = colorterm, .term = term});
  };
  EXPECT_EQ(choose(true, "", "truecolor", "xterm"), TerminalColors::kTrue);
  EXPECT_EQ(choose(true, "", "", "screen-256color"), TerminalColors::k256);
  EXPECT_EQ(choose(true, "", "", "vt100"), TerminalColors::kNone);
  EXPECT_EQ(choose(true, "1", "truecolor", "xterm"), TerminalColors::kNone);
  EXPECT_EQ(choose(true, "", "truecolor", "dumb"), TerminalColors::kNone);
  EXPECT_EQ(choose(false, "", "truecolor", "xterm-256color"), TerminalColors::kNone);
}

TEST(TextTest, PrintableHasNothingThatActs) {
  EXPECT_EQ(Printable("a\x1b[31mb"), "a\xEF\xBF\xBD[31mb");
  EXPECT_EQ(Printable(std::string("a\0b\n", 4)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "x\xE2\x80\xAEy"),
            "\xEF\xBF\xBDx\xEF\xBF\xBDy");
  EXPECT_EQ(Printable("\xff\xE6\x9D"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Printable("##ing 東京 é 👩‍👧"), "##ing 東京 é 👩‍👧");
}

TEST(TextTest, WidthIsTheTerminals) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("東京"), 4);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1);
  EXPECT_EQ(FitColumns("東京タワー", 6), "東京…");
  EXPECT_EQ(FitColumns("abc", 3), "abc");
  EXPECT_EQ(FitColumns("abcd", 3), "ab…");
  EXPECT_EQ(FitColumns("abcd", 0), "");
  EXPECT_THAT(SplitCharacters("ae\xCC\x81東"), ElementsAre("a", "e\xCC\x81", "東"));
}

TEST(TextTest, FitsIntoPixels) {
  const TextRuler ruler;
  EXPECT_EQ(ruler.Fit("short", 10, 100), "short");
  const std::string cut = ruler.Fit(std::string(1000, 'w'), 10, 100);
  EXPECT_LE(ruler.Width(cut, 10), 100);
  EXPECT_GT(ruler.Width(cut, 10), 80);
  EXPECT_EQ(ruler.Fit("東", 10, 0), "…");
}

}  // namespace
}  // namespace attendant::client
