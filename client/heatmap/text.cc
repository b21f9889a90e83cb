// SPDX-License-Identifier: Apache-2.0
#include "client/heatmap/text.h"

#include <pango/pangocairo.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/heatmap/pango_text.h"

namespace attendant::client {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";
constexpr char kEllipsis[] = "…";

int Columns(gunichar character) {
  if (g_unichar_iszerowidth(character)) return 0;
  return g_unichar_iswide(character) ? 2 : 1;
}

bool HasPicture(gunichar character) {
  // Zero-width characters reorder or join their neighbours; joiners and variation selectors belong
  // to emoji.
  return character == ' ' || g_unichar_isgraph(character) || character == 0x200D ||
         (character >= 0xFE00 && character <= 0xFE0F);
}

}  // namespace

struct TextRuler::Impl {
  // The context that drawing uses, of an image of no size.
  CairoSurface surface{cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1, 1)};
  CairoContext cairo{cairo_create(surface.get())};
};

TextRuler::TextRuler() : impl_(std::make_unique<Impl>()) {}
TextRuler::~TextRuler() = default;

double TextRuler::Width(absl::string_view text, double font_size, bool bold) const {
  const PangoText layout = LayOutText(impl_->cairo.get(), text, font_size, bold);
  int width = 0;
  pango_layout_get_size(layout.get(), &width, nullptr);
  return static_cast<double>(width) / PANGO_SCALE;
}

std::string TextRuler::Fit(absl::string_view text, double font_size, double max_width) const {
  if (Width(text, font_size) <= max_width) return std::string(text);
  const std::vector<std::string> characters = SplitCharacters(text);
  // Finds the most characters that fit by bisection.
  const auto first = [&](size_t count) {
    std::string cut;
    for (size_t i = 0; i < count; ++i) absl::StrAppend(&cut, characters[i]);
    return absl::StrCat(cut, kEllipsis);
  };
  size_t fits = 0, too_many = characters.size();
  while (too_many - fits > 1) {
    const size_t middle = fits + (too_many - fits) / 2;
    (Width(first(middle), font_size) <= max_width ? fits : too_many) = middle;
  }
  return first(fits);
}

std::string Printable(absl::string_view text) {
  std::string out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const gunichar character = g_utf8_get_char_validated(at, end - at);
    if (static_cast<gint32>(character) < 0) {
      out += kReplacement;
      ++at;
      continue;
    }
    // g_utf8_next_char of a NUL would do as well.
    const char* const next = std::min<const char*>(g_utf8_next_char(at), end);
    if (character != 0 && HasPicture(character)) {
      out.append(at, next);
    } else {
      out += kReplacement;
    }
    at = next;
  }
  return out;
}

std::vector<std::string> SplitCharacters(absl::string_view text) {
  std::vector<std::string> characters;
  const std::string ended(text);  // glib may look past an end without NUL
  for (const char* at = ended.c_str(); *at != '\0';) {
    const char* const next = g_utf8_next_char(at);
    if (Columns(g_utf8_get_char(at)) == 0 && !characters.empty()) {
      characters.back().append(at, next);
    } else {
      characters.emplace_back(at, next);
    }
    at = next;
  }
  return characters;
}

int DisplayWidth(absl::string_view text) {
  int columns = 0;
  const std::string ended(text);
  for (const char* at = ended.c_str(); *at != '\0'; at = g_utf8_next_char(at)) {
    columns += Columns(g_utf8_get_char(at));
  }
  return columns;
}

std::string FitColumns(absl::string_view text, int columns) {
  if (DisplayWidth(text) <= columns) return std::string(text);
  std::string out;
  int used = 1;  // the …
  for (const std::string& character : SplitCharacters(text)) {
    used += DisplayWidth(character);
    if (used > columns) break;
    out += character;
  }
  return columns > 0 ? out + kEllipsis : "";
}

}  // namespace attendant::client
