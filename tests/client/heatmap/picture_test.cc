// SPDX-License-Identifier: Apache-2.0
// Figures as files: an SVG is read by an XML parser, a PNG's pixels are looked at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pango/pangocairo.h>

#include <cstring>
#include <limits>
#include <memory>

#include "client/heatmap/color_map.h"
#include "client/heatmap/layout.h"
#include "client/heatmap/png.h"
#include "client/heatmap/svg.h"
#include "tests/client/heatmap/sample_maps.h"

namespace attendant::client {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ViridisTest, RunsFromDarkBlueToYellow) {
  EXPECT_EQ(Viridis(0), (Rgb{0x44, 0x01, 0x54}));
  EXPECT_EQ(Viridis(0.5f), (Rgb{0x21, 0x91, 0x8c}));
  EXPECT_EQ(Viridis(1), (Rgb{0xfd, 0xe7, 0x25}));
  EXPECT_EQ(Viridis(-3), Viridis(0));
  EXPECT_EQ(Viridis(std::numeric_limits<float>::infinity()), Viridis(1));
  EXPECT_EQ(Viridis(std::numeric_limits<float>::quiet_NaN()), Viridis(0));
}

// More weight never looks darker: what viridis is for.
TEST(ViridisTest, GrowsLighter) {
  double last = 0;
  for (int i = 0; i <= 1000; ++i) {
    const Rgb color = Viridis(static_cast<float>(i) / 1000);
    const double light = 0.2126 * color.red + 0.7152 * color.green + 0.0722 * color.blue;
    EXPECT_GE(light, last - 0.5) << i;
    last = light;
  }
}

struct Pixels {
  int width = 0, height = 0;
  std::vector<uint32_t> words;

  Rgb at(double x, double y) const {
    const uint32_t word =
        words.at(static_cast<size_t>(static_cast<int>(y) * width) + static_cast<size_t>(x));
    return {static_cast<uint8_t>(word >> 16), static_cast<uint8_t>(word >> 8 & 0xff),
            static_cast<uint8_t>(word & 0xff)};
  }
};

Pixels DecodePng(const std::string& png) {
  struct Reader {
    const std::string& bytes;
    size_t at = 0;
  } reader{png};
  const auto read = [](void* closure, unsigned char* out, unsigned int size) {
    auto& from = *static_cast<Reader*>(closure);
    if (from.bytes.size() - from.at < size) return CAIRO_STATUS_READ_ERROR;
    std::memcpy(out, from.bytes.data() + from.at, size);
    from.at += size;
    return CAIRO_STATUS_SUCCESS;
  };
  cairo_surface_t* surface = cairo_image_surface_create_from_png_stream(read, &reader);
  EXPECT_EQ(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
  Pixels pixels{.width = cairo_image_surface_get_width(surface),
                .height = cairo_image_surface_get_height(surface),
                .words = {}};
  const unsigned char* data = cairo_image_surface_get_data(surface);
  for (int y = 0; data != nullptr && y < pixels.height; ++y) {
    const auto* row = data + y * cairo_image_surface_get_stride(surface);
    for (int x = 0; x < pixels.width; ++x) {
      uint32_t word = 0;
      std::memcpy(&word, row + 4 * x, 4);
      pixels.words.push_back(word);
    }
  }
  cairo_surface_destroy(surface);
  return pixels;
}

TEST(PngTest, ShowsEveryWeightInItsColour) {
  const AttentionMaps maps = SampleMaps(12, SampleTokens(9));
  const Figure figure = LayOutHeatmap(maps, TextRuler());
  for (const double scale : {1.0, 2.0}) {
    const auto png = ToPng(figure, scale);
    ASSERT_TRUE(png.ok()) << png.status();
    const Pixels pixels = DecodePng(*png);
    EXPECT_EQ(pixels.width, figure.width * scale);
    EXPECT_EQ(pixels.height, figure.height * scale);
    EXPECT_EQ(pixels.at(0, 0), (Rgb{255, 255, 255}));
    for (int64_t map = 0; map < maps.maps(); ++map) {
      const Image& image = figure.images[static_cast<size_t>(map)];
      for (int64_t i = 0; i < 81; ++i) {
        const double cell = image.width / 9;
        const double x = image.x + (static_cast<double>(i % 9) + 0.5) * cell;
        const double y = image.y + (static_cast<double>(i / 9) + 0.5) * cell;
        const float weight = maps.map(map)[static_cast<size_t>(i)];
        ASSERT_EQ(pixels.at(x * scale, y * scale), Viridis(weight / LargestWeight(maps)))
            << map << ", " << i;
      }
    }
  }
}

TEST(PngTest, DrawsText) {
  Figure figure{
      .width = 60, .height = 60, .title = "", .images = {}, .rectangles = {}, .labels = {}};
  const auto blank = ToPng(figure, 1);
  figure.labels.push_back(
      {.text = "mmm", .x = 30, .y = 30, .font_size = 12, .anchor = Anchor::kMiddle, .color = {}});
  const Pixels level = DecodePng(*ToPng(figure, 1));
  figure.labels[0].upwards = true;
  const Pixels upwards = DecodePng(*ToPng(figure, 1));
  int dark_level = 0, dark_upwards = 0;
  for (int i = 0; i < 60; ++i) {
    dark_level += level.at(i, 30).red < 128;
    dark_upwards += upwards.at(30, i).red < 128;
  }
  EXPECT_GT(dark_level, 5);
  EXPECT_GT(dark_upwards, 5);
  for (const uint32_t word : DecodePng(*blank).words) EXPECT_EQ(word & 0xffffff, 0xffffffu);
}

TEST(PngTest, RefusesWhatIsTooLarge) {
  const Figure figure{
      .width = 4000, .height = 10, .title = "", .images = {}, .rectangles = {}, .labels = {}};
  EXPECT_TRUE(ToPng(figure, 8).ok());
  const absl::Status status = ToPng(figure, 16).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("64000 x 160 pixels, the limit is 32767"));
  EXPECT_FALSE(ToPng(figure, 0).ok());
  EXPECT_FALSE(ToPng(figure, std::numeric_limits<double>::quiet_NaN()).ok());
}

// The contents of an SVG's text elements, by an XML parser that accepts well-formed documents only.
std::vector<std::string> SvgTexts(const std::string& svg) {
  std::vector<std::string> texts;
  GMarkupParser parser{};
  parser.text = [](GMarkupParseContext* context, const gchar* text, gsize size, gpointer out,
                   GError**) {
    if (std::strcmp(g_markup_parse_context_get_element(context), "text") == 0) {
      static_cast<std::vector<std::string>*>(out)->emplace_back(text, size);
    }
  };
  GMarkupParseContext* context =
      g_markup_parse_context_new(&parser, static_cast<GMarkupParseFlags>(0), &texts, nullptr);
  GError* error = nullptr;
  EXPECT_TRUE(
      g_markup_parse_context_parse(context, svg.data(), static_cast<gssize>(svg.size()), &error) &&
      g_markup_parse_context_end_parse(context, &error))
      << (error == nullptr ? "" : error->message);
  g_clear_error(&error);
  g_markup_parse_context_free(context);
  return texts;
}

TEST(SvgTest, KeepsEveryTokenWhateverItsCharacters) {
  const std::vector<std::string> tokens = {"<b>", "a&b", "\"q\"", "it's", "]]>", "東京", "&lt;"};
  AttentionMaps maps = SampleMaps(2, tokens);
  maps.title = "</title><script>alert(1)</script>";
  const std::string svg = ToSvg(LayOutHeatmap(maps, TextRuler()));
  const std::vector<std::string> texts = SvgTexts(svg);
  for (const std::string& token : tokens) EXPECT_THAT(texts, Contains(token).Times(3));
  EXPECT_THAT(texts, Contains("head 1"));
  EXPECT_THAT(texts, Contains(maps.title));
  EXPECT_THAT(svg, ::testing::Not(HasSubstr("<script")));
}

TEST(SvgTest, IsSmallAtAnyLength) {
  const std::string svg = ToSvg(LayOutHeatmap(SampleMaps(4, SampleTokens(512)), TextRuler()));
  SvgTexts(svg);
  EXPECT_LT(svg.size(), size_t{4} << 20);
}

}  // namespace
}  // namespace attendant::client
