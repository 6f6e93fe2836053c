"""The root mean square of each weight by its place in the file, on a logarithmic scale; those with a finding ringed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from inspector.file_report.report import TensorFacts
from inspector.render.page_report import svg

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 760.0, 240.0, 56.0, 30.0, 26.0
_MOST_RINGS = 60
# Readable on either ground, told apart by colour-blind eyes; the rest are grey.
_COLOURS = {
    "convolution": "#2a788e",
    "depthwise convolution": "#5ec962",
    "linear": "#d98c21",
    "embedding": "#b5478f",
    "recurrent": "#8c6bb1",
    "LoRA A": "#2a788e",
    "LoRA B": "#d98c21",
}
_OTHER = "#8a949b"


def depth_figure(tensors: Sequence[TensorFacts], sick: Collection[str]) -> str:
    """sick: names with an error or a warning. "" where fewer than two weights have a size to compare."""
    sizes = [(t, t.numbers.rms) for t in tensors if len(t.shape) >= 2 and t.numbers is not None and t.numbers.rms]
    if len(sizes) < 2:
        return ""
    logs = [math.log10(rms) for _, rms in sizes]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    high = max(high, low + 1)
    wide, tall = _WIDTH - _LEFT - 10, _HEIGHT - _TOP - _BOTTOM

    def place(n: int, log: float) -> tuple[float, float]:
        return _LEFT + wide * (n + 0.5) / len(sizes), _TOP + tall * (high - log) / (high - low)

    parts = []
    for power in range(low, high + 1, max(1, (high - low) // 6)):
        y = place(0, power)[1]
        parts += [svg.line(_LEFT, y, _WIDTH - 10, y), svg.text(_LEFT - 6, y + 4, f"{10.0**power:g}", anchor="end")]
    at = _LEFT
    for role in dict.fromkeys(t.role for t, _ in sizes):
        colour = _COLOURS.get(role, _OTHER)
        own = [place(n, log) for n, ((t, _), log) in enumerate(zip(sizes, logs, strict=True)) if t.role == role]
        parts.append(svg.dots(own, fill=colour))
        if at < _WIDTH - 150:
            parts += [svg.dots([(at + 4, 10)], fill=colour, size=8), svg.text(at + 12, 14, role or "other")]
            at += 30 + 6 * len(role or "other")
    marked = [n for n, (t, _) in enumerate(sizes) if t.name in sick][:_MOST_RINGS]
    parts += [svg.ring(*place(n, logs[n])) for n in marked]
    parts.append(svg.text(_LEFT + wide / 2, _HEIGHT - 8, "weights, in the file's order", anchor="middle"))
    return svg.figure(parts, width=_WIDTH, height=_HEIGHT, says="Root mean square of each weight, by its place")
