// SPDX-License-Identifier: Apache-2.0
#include "client/heatmap/png.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "client/heatmap/pango_text.h"
#include "client/heatmap/text.h"

namespace attendant::client {
namespace {

constexpr int kMaxSide = 32767;      // cairo's own
constexpr int kMaxPixels = 1 << 27;  // 512 MiB while it is drawn

cairo_status_t AppendBytes(void* closure, const unsigned char* data, unsigned int size) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), size);
  return CAIRO_STATUS_SUCCESS;
}

std::string PngBytes(cairo_surface_t* surface) {
  std::string bytes;
  cairo_surface_write_to_png_stream(surface, AppendBytes, &bytes);
  return bytes;
}

// Cairo's RGB24: a native 32-bit word for each pixel, blue in the lowest byte.
CairoSurface SurfaceOf(const Image& image, int64_t columns = 1, int64_t rows = 1) {
  CairoSurface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24,
                                                  static_cast<int>(image.columns * columns),
                                                  static_cast<int>(image.rows * rows)));
  cairo_surface_flush(surface.get());
  unsigned char* const data = cairo_image_surface_get_data(surface.get());
  const int stride = cairo_image_surface_get_stride(surface.get());
  for (int64_t row = 0; row < image.rows * rows; ++row) {
    for (int64_t column = 0; column < image.columns * columns; ++column) {
      const int64_t pixel = row / rows * image.columns + column / columns;
      const Rgb color = image.pixels[static_cast<size_t>(pixel)];
      const uint32_t word = static_cast<uint32_t>(color.red) << 16 |
                            static_cast<uint32_t>(color.green) << 8 | color.blue;
      std::memcpy(data + row * stride + column * 4, &word, sizeof(word));
    }
  }
  cairo_surface_mark_dirty(surface.get());
  return surface;
}

void SetColor(cairo_t* cairo, Rgb color) {
  cairo_set_source_rgb(cairo, color.red / 255.0, color.green / 255.0, color.blue / 255.0);
}

void Draw(cairo_t* cairo, const Image& image, double scale) {
  const CairoSurface surface = SurfaceOf(image);
  cairo_save(cairo);
  cairo_translate(cairo, image.x, image.y);
  cairo_scale(cairo, image.width / static_cast<double>(image.columns),
              image.height / static_cast<double>(image.rows));
  cairo_set_source_surface(cairo, surface.get(), 0, 0);
  // Sharp edges between cells; cells that share a pixel are averaged.
  const bool smaller = image.width * scale < static_cast<double>(image.columns);
  cairo_pattern_set_filter(cairo_get_source(cairo),
                           smaller ? CAIRO_FILTER_BEST : CAIRO_FILTER_NEAREST);
  cairo_rectangle(cairo, 0, 0, static_cast<double>(image.columns), static_cast<double>(image.rows));
  cairo_fill(cairo);
  cairo_restore(cairo);
}

void Draw(cairo_t* cairo, const Rectangle& rectangle) {
  SetColor(cairo, rectangle.color);
  if (rectangle.filled) {
    cairo_rectangle(cairo, rectangle.x, rectangle.y, rectangle.width, rectangle.height);
    cairo_fill(cairo);
    return;
  }
  cairo_set_line_width(cairo, 1);
  cairo_rectangle(cairo, rectangle.x - 0.5, rectangle.y - 0.5, rectangle.width + 1,
                  rectangle.height + 1);
  cairo_stroke(cairo);
}

void Draw(cairo_t* cairo, const Label& label) {
  const PangoText text = LayOutText(cairo, label.text, label.font_size, label.bold);
  int width = 0;
  pango_layout_get_size(text.get(), &width, nullptr);
  const double length = static_cast<double>(width) / PANGO_SCALE;
  const double baseline = static_cast<double>(pango_layout_get_baseline(text.get())) / PANGO_SCALE;
  const double before = label.anchor == Anchor::kStart    ? 0
                        : label.anchor == Anchor::kMiddle ? length / 2
                                                          : length;
  cairo_save(cairo);
  SetColor(cairo, label.color);
  cairo_translate(cairo, label.x, label.y);
  if (label.upwards) cairo_rotate(cairo, -std::numbers::pi / 2);
  cairo_move_to(cairo, -before, kBaselineBelowMiddle * label.font_size - baseline);
  pango_cairo_update_layout(cairo, text.get());
  pango_cairo_show_layout(cairo, text.get());
  cairo_restore(cairo);
}

}  // namespace

absl::StatusOr<std::string> ToPng(const Figure& figure, double scale) {
  const double width = std::ceil(figure.width * scale);
  const double height = std::ceil(figure.height * scale);
  if (!(width >= 1 && height >= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a picture of ", width, " x ", height, " pixels cannot be"));
  }
  if (width > kMaxSide || height > kMaxSide || width * height > kMaxPixels) {
    return absl::InvalidArgumentError(absl::StrCat("the picture would have ", width, " x ", height,
                                                   " pixels, the limit is ", kMaxSide,
                                                   " for a side and ", kMaxPixels, " in all"));
  }
  const CairoSurface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width),
                                                        static_cast<int>(height)));
  const CairoContext cairo(cairo_create(surface.get()));
  cairo_scale(cairo.get(), scale, scale);
  SetColor(cairo.get(), {255, 255, 255});
  cairo_paint(cairo.get());
  for (const Image& image : figure.images) Draw(cairo.get(), image, scale);
  for (const Rectangle& rectangle : figure.rectangles) Draw(cairo.get(), rectangle);
  for (const Label& label : figure.labels) Draw(cairo.get(), label);
  if (const cairo_status_t status = cairo_status(cairo.get()); status != CAIRO_STATUS_SUCCESS) {
    return absl::InternalError(absl::StrCat("cairo: ", cairo_status_to_string(status)));
  }
  return PngBytes(surface.get());
}

std::string ToPng(const Image& image, int columns, int rows) {
  return PngBytes(SurfaceOf(image, columns, rows).get());
}

}  // namespace attendant::client
