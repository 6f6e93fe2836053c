"""The few marks that the report's figures are made of, as SVG text.

Text takes the page's colour, so that a figure is read on light and dark ground; what is drawn in colours of its own is
readable on both.
"""

from __future__ import annotations

from collections.abc import Iterable

from inspector.render.html_text import escaped

#: Viridis in ten steps (van der Walt and Smith, CC0): rises evenly in lightness, also to colour-blind eyes.
VIRIDIS = (
    (68, 1, 84), (72, 40, 120), (62, 73, 137), (49, 104, 142), (38, 130, 142),
    (31, 158, 137), (53, 183, 121), (110, 206, 88), (181, 222, 43), (253, 231, 37),
)  # fmt: skip
#: The middle of it, readable on white and on black.
ACCENT = "#2a788e"
GRID = "rgba(128,128,128,0.3)"


def figure(parts: Iterable[str], *, width: float, height: float, says: str) -> str:
    """The whole drawing. says: what it shows, for who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escaped(says)}" fill="currentColor" '
        f'font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def rectangle(x: float, y: float, width: float, height: float, fill: str, *, title: str = "", inside: str = "") -> str:
    """title: shown where the pointer rests. inside: further marks that belong to it."""
    told = f"<title>{escaped(title)}</title>" if title else ""
    box = f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" fill="{fill}"'
    box += f">{told}</rect>" if told else "/>"
    return f"<g>{box}{inside}</g>" if inside else box


def text(x: float, y: float, says: str, *, anchor: str = "", fill: str = "", more: str = "") -> str:
    """One line of text. anchor: "middle" or "end"; says is escaped, more is an attribute of our own."""
    given = (f' text-anchor="{anchor}"' if anchor else "") + (f' fill="{fill}"' if fill else "") + more
    return f'<text x="{_n(x)}" y="{_n(y)}"{given}>{escaped(says)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = GRID) -> str:
    """A thin line."""
    return f'<path d="M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}" stroke="{stroke}" fill="none"/>'


def dots(places: Iterable[tuple[float, float]], *, fill: str, size: float = 5) -> str:
    """Round marks at many places, in whole pixels and each once: twenty thousand cost what a screen has room for."""
    once = dict.fromkeys((round(x), round(y)) for x, y in places)
    path = "".join(f"M{x} {y}h0" for x, y in once)
    return f'<path d="{path}" stroke="{fill}" stroke-width="{size:g}" stroke-linecap="round" fill="none"/>'


def ring(x: float, y: float) -> str:
    """A circle around what is to be noticed."""
    return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="6" fill="none" stroke="#c0392b" stroke-width="2"/>'


def viridis(share: float) -> tuple[int, int, int]:
    """0..1 -> (red, green, blue)."""
    place = min(max(share, 0.0), 1.0) * (len(VIRIDIS) - 1)
    below = min(int(place), len(VIRIDIS) - 2)
    part = place - below
    low, high = VIRIDIS[below], VIRIDIS[below + 1]
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(low, high, strict=True))
    return red, green, blue


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
