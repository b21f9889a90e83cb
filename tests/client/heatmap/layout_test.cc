// SPDX-License-Identifier: Apache-2.0
#include "client/heatmap/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/client/heatmap/sample_maps.h"

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

struct Box {
  double left, top, right, bottom;
  bool Overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

Box BoxOf(const Label& label, const TextRuler& ruler) {
  const double length = ruler.Width(label.text, label.font_size, label.bold);
  const double before = label.anchor == Anchor::kStart    ? 0
                        : label.anchor == Anchor::kMiddle ? length / 2
                                                          : length;
  // Letters reach about half the font's size above and below their middle line.
  const double half = label.font_size / 2;
  if (label.upwards) {
    return {label.x - half, label.y - (length - before), label.x + half, label.y + before};
  }
  return {label.x - before, label.y - half, label.x - before + length, label.y + half};
}

Box BoxOf(const Image& image) {
  return {image.x, image.y, image.x + image.width, image.y + image.height};
}

// Numbers of maps and tokens.
class LayoutTest : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(LayoutTest, NothingOverlapsOrLeavesThePicture) {
  const auto [num_maps, len] = GetParam();
  const AttentionMaps maps = SampleMaps(num_maps, SampleTokens(len));
  const TextRuler ruler;
  const Figure figure = LayOutHeatmap(maps, ruler);
  ASSERT_THAT(figure.images, SizeIs(num_maps + 1));  // and the bar
  std::vector<std::pair<std::string, Box>> boxes;
  for (const Image& image : figure.images) boxes.emplace_back("an image", BoxOf(image));
  for (const Label& label : figure.labels) {
    const bool in_cell = label.font_size == 9 && label.anchor == Anchor::kMiddle;
    if (!in_cell) boxes.emplace_back(label.text, BoxOf(label, ruler));
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    const auto& [text, box] = boxes[i];
    EXPECT_GE(box.left, 0) << text;
    EXPECT_GE(box.top, 0) << text;
    EXPECT_LE(box.right, figure.width) << text;
    EXPECT_LE(box.bottom, figure.height) << text;
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(box.Overlaps(boxes[j].second)) << text << " over " << boxes[j].first;
    }
  }
}

TEST_P(LayoutTest, NamesTokensOnBothAxes) {
  const auto [num_maps, len] = GetParam();
  const AttentionMaps maps = SampleMaps(num_maps, SampleTokens(len));
  const Figure figure = LayOutHeatmap(maps, TextRuler());
  int level = 0, upwards = 0;
  for (const Label& label : figure.labels) {
    if (label.text == "[CLS]") ++(label.upwards ? upwards : level);
  }
  const int64_t columns = GridColumns(num_maps);
  EXPECT_EQ(level, (num_maps + columns - 1) / columns);
  EXPECT_EQ(upwards, std::min<int64_t>(columns, num_maps));
}

INSTANTIATE_TEST_SUITE_P(Sizes, LayoutTest,
                         testing::Combine(testing::Values(1, 2, 3, 5, 12),
                                          testing::Values(1, 2, 8, 11, 40, 200, 512)));

TEST(LayoutTest, ManyTokensStayWithinAPicture) {
  const Figure figure = LayOutHeatmap(SampleMaps(4, SampleTokens(1400)), TextRuler());
  EXPECT_LT(figure.width, 9000);
  EXPECT_LT(figure.height, 9000);
}

TEST(LayoutTest, LongTokensAreCut) {
  const TextRuler ruler;
  const AttentionMaps maps = SampleMaps(1, {"[CLS]", std::string(5000, 'w'), "[SEP]"});
  const Figure figure = LayOutHeatmap(maps, ruler);
  EXPECT_LT(figure.width, 800);
  const auto cut = std::find_if(figure.labels.begin(), figure.labels.end(), [](const Label& label) {
    return label.text.size() > 3 && label.text.ends_with("…");
  });
  ASSERT_NE(cut, figure.labels.end());
  EXPECT_LE(ruler.Width(cut->text, cut->font_size), 110);
}

TEST(LayoutTest, AllZerosAreDrawn) {
  AttentionMaps maps = SampleMaps(2, SampleTokens(3));
  std::fill(maps.weights.begin(), maps.weights.end(), 0.0f);
  EXPECT_EQ(LargestWeight(maps), 1);
  EXPECT_THAT(LayOutHeatmap(maps, TextRuler()).images, SizeIs(3));
}

TEST(LayoutTest, GridsAreFullWhereTheyCanBe) {
  std::vector<int64_t> columns;
  for (const int count : {1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 16})
    columns.push_back(GridColumns(count));
  EXPECT_THAT(columns, ElementsAre(1, 2, 3, 2, 3, 3, 4, 3, 5, 4, 4));
}

TEST(LayoutTest, TicksAreRound) {
  EXPECT_THAT(Ticks(1, 5), ElementsAre(0, testing::DoubleEq(0.2), testing::DoubleEq(0.4),
                                       testing::DoubleNear(0.6, 1e-9), testing::DoubleEq(0.8), 1));
  EXPECT_THAT(Ticks(0.031, 5), SizeIs(4));  // 0, 0.01, 0.02, 0.03
  EXPECT_THAT(Ticks(1e-20, 5), SizeIs(6));
}

TEST(AttentionMapsTest, AverageIsTheMean) {
  const AttentionMaps maps = SampleMaps(3, SampleTokens(4));
  const AttentionMaps mean = Average(maps);
  ASSERT_THAT(mean.names, ElementsAre("mean of 3 heads"));
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(mean.weights[i], (maps.map(0)[i] + maps.map(1)[i] + maps.map(2)[i]) / 3, 1e-6);
  }
}

}  // namespace
}  // namespace attendant::client
