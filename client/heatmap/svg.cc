// SPDX-License-Identifier: Apache-2.0
#include "client/heatmap/svg.h"

#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/heatmap/png.h"
#include "client/heatmap/text.h"

namespace attendant::client {
namespace {

std::string Hex(Rgb color) {
  return absl::StrFormat("#%02x%02x%02x", color.red, color.green, color.blue);
}

// Viewers that ignore image-rendering blur an image that they enlarge. With so many pixels for each
// cell they have nothing to enlarge.
int Enlargement(double length, int64_t pixels) {
  const double one = length / static_cast<double>(pixels);
  return one > 1 ? static_cast<int>(std::ceil(2 * one)) : 1;
}

void Append(const Image& image, std::string& svg) {
  const std::string png =
      ToPng(image, Enlargement(image.width, image.columns), Enlargement(image.height, image.rows));
  absl::StrAppendFormat(&svg,
                        "<image x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" "
                        "preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" "
                        "href=\"data:image/png;base64,%s\"/>\n",
                        image.x, image.y, image.width, image.height, absl::Base64Escape(png));
}

void Append(const Rectangle& rectangle, std::string& svg) {
  const double out = rectangle.filled ? 0 : 0.5;
  const std::string paint =
      rectangle.filled ? absl::StrCat("fill=\"", Hex(rectangle.color), "\"")
                       : absl::StrCat("fill=\"none\" stroke=\"", Hex(rectangle.color), "\"");
  absl::StrAppendFormat(&svg, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" %s/>\n",
                        rectangle.x - out, rectangle.y - out, rectangle.width + 2 * out,
                        rectangle.height + 2 * out, paint);
}

void Append(const Label& label, std::string& svg) {
  const char* const anchor = label.anchor == Anchor::kStart    ? "start"
                             : label.anchor == Anchor::kMiddle ? "middle"
                                                               : "end";
  absl::StrAppendFormat(
      &svg,
      "<text transform=\"translate(%g %g)%s\" y=\"%.3g\" font-size=\"%g\" text-anchor=\"%s\"%s "
      "fill=\"%s\" xml:space=\"preserve\">%s</text>\n",
      label.x, label.y, label.upwards ? " rotate(-90)" : "", kBaselineBelowMiddle * label.font_size,
      label.font_size, anchor, label.bold ? " font-weight=\"bold\"" : "", Hex(label.color),
      EscapeXml(label.text));
}

}  // namespace

std::string EscapeXml(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&apos;"}});
}

std::string ToSvg(const Figure& figure) {
  std::string svg = absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
      "font-family=\"%s\">\n<title>%s</title>\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
      figure.width, figure.height, figure.width, figure.height, kFontFamilies,
      EscapeXml(figure.title));
  for (const Image& image : figure.images) Append(image, svg);
  for (const Rectangle& rectangle : figure.rectangles) Append(rectangle, svg);
  for (const Label& label : figure.labels) Append(label, svg);
  svg += "</svg>\n";
  return svg;
}

}  // namespace attendant::client
