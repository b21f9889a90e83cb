// SPDX-License-Identifier: Apache-2.0
#include "client/heatmap/pango_text.h"

#include "client/heatmap/text.h"

namespace attendant::client {

PangoText LayOutText(cairo_t* cairo, absl::string_view text, double font_size, bool bold) {
  PangoText layout(pango_cairo_create_layout(cairo));
  PangoFontDescription* font = pango_font_description_new();
  pango_font_description_set_family_static(font, kFontFamilies);
  pango_font_description_set_weight(font, bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
  pango_font_description_set_absolute_size(font, font_size * PANGO_SCALE);
  pango_layout_set_font_description(layout.get(), font);
  pango_font_description_free(font);
  pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
  pango_layout_set_text(layout.get(), text.data(), static_cast<int>(text.size()));
  return layout;
}

}  // namespace attendant::client
