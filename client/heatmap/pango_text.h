// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pango/pangocairo.h>

#include <memory>

#include "absl/strings/string_view.h"

// Owners of cairo's and pango's objects, and how text is set. Included by .cc files only.
namespace attendant::client {

struct CairoDeleter {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* cairo) const { cairo_destroy(cairo); }
  void operator()(PangoLayout* layout) const { g_object_unref(layout); }
};
using CairoSurface = std::unique_ptr<cairo_surface_t, CairoDeleter>;
using CairoContext = std::unique_ptr<cairo_t, CairoDeleter>;
using PangoText = std::unique_ptr<PangoLayout, CairoDeleter>;

// Lays out one line of text in kFontFamilies. `font_size` is in pixels.
PangoText LayOutText(cairo_t* cairo, absl::string_view text, double font_size, bool bold);

}  // namespace attendant::client
