"""The fingerprint as SVG: a row per tensor, colour by the logarithm of the share in the bin, on a fixed scale, so that
two reports can be laid side by side."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from inspector.render.page_report import svg
from inspector.render.png import plain_png, png_address
from inspector.units import shorten_apart, shorten_middle
from inspector.weights.report import Fingerprint

_LEAST_LOG10 = -5
_LEFT, _TOP, _WIDE, _RIGHT = 190.0, 6.0, 480.0, 90.0
_ROW, _LEAST_TALL, _MOST_TALL = 14.0, 60.0, 420.0
_LABEL = 30


def fingerprint_strip(strip: Fingerprint) -> str:
    """The figure; "" without a row. Cells are the pixels of a picture inside it: as rectangles they were megabytes."""
    rows = len(strip.names)
    if not rows:
        return ""
    tall = min(_MOST_TALL, max(_LEAST_TALL, _ROW * rows))
    parts = [
        f'<image x="{_LEFT:g}" y="{_TOP:g}" width="{_WIDE:g}" height="{tall:g}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="{png_address(plain_png(_pixels(strip)))}"/>'
    ]
    every = max(1, math.ceil(rows / (tall / 12)))
    named = range(0, rows, every)
    for n, short in zip(named, shorten_apart([strip.names[n] for n in named], _LABEL), strict=True):
        y = _TOP + (n + 0.5) * tall / rows + 4
        # What only the whole name tells apart has no more room than the others.
        name = shorten_middle(short, _LABEL)
        parts.append(svg.text(_LEFT - 6, y, name, anchor="end", more=' font-family="monospace" font-size="10"'))
    low, high = strip.edges[0], strip.edges[-1]
    for tick in range(math.ceil(low), math.floor(high) + 1, 2):
        x = _LEFT + (tick - low) / (high - low) * _WIDE
        parts += [
            svg.line(x, _TOP + tall, x, _TOP + tall + 4),
            svg.text(x, _TOP + tall + 16, f"{tick}", anchor="middle"),
        ]
    parts.append(svg.text(_LEFT + _WIDE / 2, _TOP + tall + 32, "value / rms of its tensor", anchor="middle"))
    parts += _scale(_LEFT + _WIDE + 18)
    return svg.figure(
        parts, width=_LEFT + _WIDE + _RIGHT, height=max(_TOP + tall + 38, 130), says="Layers by values, heat strip"
    )


def _pixels(strip: Fingerprint) -> NDArray[np.uint8]:
    """(rows, bins, 4): clear where no element is."""
    shares = np.asarray(strip.shares, np.float64)
    there = shares > 0
    steps = np.zeros_like(shares)
    steps[there] = 1 - np.log10(shares[there]) / _LEAST_LOG10
    table = np.array([svg.viridis(step / 255) for step in range(256)], np.uint8)
    pixels = np.zeros((*shares.shape, 4), np.uint8)
    pixels[..., :3] = table[np.rint(np.clip(steps, 0, 1) * 255).astype(np.intp)]
    pixels[..., 3] = np.where(there, 255, 0)
    return pixels


def _scale(x: float) -> list[str]:
    parts = [svg.text(x, _TOP + 8, "share")]
    for n, power in enumerate(range(0, _LEAST_LOG10 - 1, -1)):
        red, green, blue = svg.viridis(1 - power / _LEAST_LOG10)
        y = _TOP + 16 + 17 * n
        parts += [
            svg.rectangle(x, y, 12, 14, f"rgb({red},{green},{blue})"),
            svg.text(x + 17, y + 11, f"{100 * 10.0**power:g} %"),
        ]
    return parts
