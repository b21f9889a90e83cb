# SPDX-License-Identifier: Apache-2.0
"""Attention weights as pictures."""

from __future__ import annotations

import base64
import html
import pathlib
import struct
import unicodedata
import zlib
from dataclasses import dataclass, field

import numpy as np

from attendant.tensors import Array

_VIRIDIS = np.array([(68, 1, 84), (72, 40, 120), (62, 74, 137), (49, 104, 142), (38, 130, 142), (31, 158, 137),
                     (53, 183, 121), (110, 206, 88), (181, 222, 43), (253, 231, 37)], np.float32)
_GRID_PIXELS = 300           # about the width of a map
_CELL_PIXELS = (3, 22)       # least and most of a token
_LEAST_LABEL = 7             # pixels; cells that are smaller have no labels
_LABEL_CHARACTERS = 14
_CHARACTER_WIDTH = 0.62      # of the font size, in a monospaced font


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Which token looks at which. A notebook shows the maps of the last of `layers`."""

    # [layers, heads, len, len]; a row is a token that looks, and sums to 1
    weights: Array = field(repr=False)
    tokens: list[str]  # [len]
    layers: list[int]  # the layers of `weights`, as the model counts them
    heads: list[int]

    def of(self, layer: int | None = None, head: int | None = None) -> Array:
        """[len, len] of a layer (None: the last) and a head (None: the mean of the heads), as the model counts them."""
        maps = self.weights[_place("layer", self.layers, layer)]
        mean: Array = maps.mean(0) if head is None else maps[_place("head", self.heads, head)]
        return mean

    def svg(self, layer: int | None = None, head: int | None = None) -> str:
        """A picture of of(layer, head): rows look at columns. Colours go from 0 to the largest weight."""
        name = f"layer {self.layers[-1] if layer is None else layer}, " + (
            "mean of the heads" if head is None else f"head {head}")
        return _svg(self.of(layer, head), [_label(token) for token in self.tokens], name)

    def save(self, path: str | pathlib.Path, layer: int | None = None, head: int | None = None) -> None:
        """Writes svg(layer, head) to a file."""
        pathlib.Path(path).write_text(self.svg(layer, head), encoding="utf-8")

    def _repr_html_(self) -> str:
        maps = "".join(self.svg(None, head) for head in self.heads)
        return f'<div style="display:flex;flex-wrap:wrap;gap:12px">{maps}</div>'


def _place(what: str, numbers: list[int], number: int | None) -> int:
    if number is None:
        return len(numbers) - 1
    if number not in numbers:
        raise ValueError(f"{what} is {number}: the maps have {numbers}")
    return numbers.index(number)


def _label(token: str) -> str:
    """The token without characters that XML forbids or that change the direction of text."""
    shown = "".join("\ufffd" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Cn") else char for char in token)
    return shown if len(shown) <= _LABEL_CHARACTERS else shown[:_LABEL_CHARACTERS - 1] + "…"


def _png(colors: Array) -> bytes:
    """A PNG of [height, width, 3] bytes."""
    height, width, _ = colors.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = np.concatenate([np.zeros((height, 1), np.uint8), colors.reshape(height, -1)], 1).tobytes()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def _colors(weights: Array) -> Array:
    """[len, len, 3] bytes; NaN is 0."""
    top = float(np.nanmax(weights, initial=0)) or 1.0
    places = np.nan_to_num(weights.astype(np.float32) / top).clip(0, 1) * (len(_VIRIDIS) - 1)
    steps = np.arange(len(_VIRIDIS))
    return np.stack([np.interp(places, steps, _VIRIDIS[:, i]) for i in range(3)], -1).round().astype(np.uint8)


def _svg(weights: Array, labels: list[str], name: str) -> str:
    """Cells are pixels of an image that is stretched: the size of the picture grows with bytes, not with elements."""
    cell = min(max(_GRID_PIXELS / len(labels), _CELL_PIXELS[0]), _CELL_PIXELS[1])
    font = min(cell, 12)
    margin = 8.0
    if cell >= _LEAST_LABEL:
        margin += max(map(len, labels)) * font * _CHARACTER_WIDTH
    grid, top = cell * len(labels), margin + 18
    image = base64.b64encode(_png(_colors(weights))).decode()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{margin + grid + 4:.0f}" height="{top + grid + 4:.0f}" role="img" '
        f'font-family="monospace" font-size="{font:.1f}" fill="currentColor">',
        f"<title>Attention weights, {name}: 0 to {float(np.nanmax(weights, initial=0)):.3f}</title>",
        f'<text x="4" y="13" font-size="12" font-family="sans-serif">{name}</text>',
        f'<image x="{margin:.1f}" y="{top:.1f}" width="{grid:.1f}" height="{grid:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{image}"/>']
    for i, label in enumerate(labels if cell >= _LEAST_LABEL else ()):
        middle, text = (i + 0.5) * cell, html.escape(label)
        parts.append(f'<text x="{margin - 4:.1f}" y="{top + middle + font * 0.36:.1f}" text-anchor="end">{text}</text>')
        parts.append(f'<text transform="translate({margin + middle + font * 0.36:.1f} {top - 4:.1f}) rotate(-90)">{text}'
                     "</text>")
    return "".join(parts) + "</svg>"
