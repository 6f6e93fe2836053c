"""The channels of a module as pictures: each with its number and range, on its own scale or one for all."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from inspector.doctor.maps_asked import Order, Scale, Side
from inspector.doctor.maps_report import FeatureMaps
from inspector.errors import UsageError
from inspector.render.colour_maps import coloured
from inspector.render.visible import visible
from inspector.units import counted, human_shape, human_share

COLOURS = ("viridis", "cividis", "grey")
SIDE = 128
_LINE_SIZE = (264, 72)
_GAP, _ROW, _MARGIN = 10, 15, 12
_PAPER, _INK, _MARK = (255, 255, 255), (32, 32, 32), (176, 32, 32)
# None of the maps of colours has it: where a value is no finite number.
_NOT_FINITE = (224, 0, 60)
_FLAT = (150, 150, 150)
_LINE, _GROUND, _ZERO = (31, 90, 160), (248, 248, 248), (205, 205, 205)
_LISTED = 12

Pixels = NDArray[np.uint8]


def channel_pixels(maps: FeatureMaps, place: int, *, scale: Scale, colours: str) -> Pixels:
    """(h, w, 3) of the channel at that place of `shown`, a pixel for each cell; of a line its curve.

    Flat grey where the scale has no width, red where a value is not finite. Raises UsageError for other colours.
    """
    if colours not in COLOURS:
        raise UsageError(f"There is no colour map {colours!r} here.", hint=f"Colours: {', '.join(COLOURS)}.")
    low, high = _range(maps, place, scale)
    values = maps.raw[place].astype(np.float64)
    if maps.axes.layout == "NCL":
        return _curve(values[0], low, high)
    finite = np.isfinite(values)
    pixels: Pixels
    if high > low:
        # Halved first: the width of the widest range is no number.
        shares = np.where(finite, (values / 2 - low / 2) / (high / 2 - low / 2), 0.0)
        pixels = _grey(shares) if colours == "grey" else coloured(shares, colours)
    else:
        pixels = np.full((*values.shape, 3), _FLAT, dtype=np.uint8)
    return np.where(finite[..., None], pixels, np.asarray(_NOT_FINITE, dtype=np.uint8))


def caption(maps: FeatureMaps, number: int) -> tuple[str, str]:
    """Of one channel: its number, its range and what is wrong with it."""
    one = maps.channels[number]
    bad = one.nans + one.infinities + one.negative_infinities
    if one.minimum is None or one.maximum is None:
        says = "nothing finite"
    elif one.constant:
        says = "zero everywhere" if one.minimum == 0 else f"{one.minimum:.3g} everywhere"
    else:
        says = f"{one.minimum:.3g} to {one.maximum:.3g}" + (f", {bad:,} not finite" if bad else "")
    return f"#{number}", says


def is_marked(maps: FeatureMaps, number: int) -> bool:
    """Whether a channel is one number everywhere, or has values that are not finite."""
    one = maps.channels[number]
    return one.constant or bool(one.nans + one.infinities + one.negative_infinities)


def heading(maps: FeatureMaps) -> str:
    """Which tensor it is."""
    which = f", call {maps.time} of {maps.calls}" if maps.calls > 1 else ""
    several = f", tensor {maps.tensor} of {maps.tensors} (from 0)" if maps.tensors > 1 else ""
    shape = f"{human_shape(maps.shape)} {maps.dtype}"
    return f"{maps.side} of {maps.path or 'the model'} ({maps.kind}){which}{several}, {shape}"


def sentences(maps: FeatureMaps, scale: Scale) -> tuple[str, ...]:
    """What is shown and how, and what is constant or dead."""
    total, shown = len(maps.channels), len(maps.shown)
    order = "the strongest variance first" if maps.order is Order.VARIANCE else "by number"
    some = (
        f"{shown} of {counted(total, 'channel')}"
        if shown < total
        else f"All {total} channels"
        if total > 1
        else "Its one channel"
    )
    said = [f"{some}, {order}."]
    if maps.low is None:
        said.append("Nothing in it is a finite number.")
    elif scale is Scale.CHANNEL:
        what = "heights compare" if maps.axes.layout == "NCL" else "brightness compares"
        said.append(f"Each channel on its own scale, from its least value to its greatest: {what} within one alone.")
    else:
        said.append(f"One scale for all channels: {maps.low:.4g} to {maps.high:.4g}.")
    if maps.axes.layout == "NLC":
        rows, columns = maps.axes.grid
        before = f", without {counted(maps.axes.prefix_tokens, 'token')} before them" if maps.axes.prefix_tokens else ""
        said.append(f"Tokens as {rows} rows of {columns} patches{before}.")
    if maps.shape[0] > 1:
        said.append(f"The first of {maps.shape[0]:,} samples.")
    if maps.drawn != maps.axes.grid:
        drawn, whole = human_shape(maps.drawn), human_shape(maps.axes.grid)
        said.append(f"Drawn at {drawn}, neighbouring cells averaged; ranges are of all {whole}.")
    said += [*_marked(maps)]
    return tuple(said)


def _marked(maps: FeatureMaps) -> Iterator[str]:
    total = len(maps.channels)
    what = "on this input (another may wake them)" if maps.side is Side.OUTPUT else "on this input"
    for numbers, says in (
        (maps.zero, f"zero everywhere {what}"),
        (maps.constant, "one number everywhere on this input"),
        (maps.not_finite, "with values that are not finite"),
    ):
        if numbers:
            more = f" and {len(numbers) - _LISTED:,} more" if len(numbers) > _LISTED else ""
            listed = ", ".join(f"#{n}" for n in numbers[:_LISTED]) + more
            share = human_share(len(numbers) / total)
            yield f"{counted(len(numbers), 'channel')} of {total:,} ({share}) {says}: {listed}."
    if not (maps.zero or maps.constant or maps.not_finite):
        yield "No channel is constant, and all values are finite."


def maps_sheet(maps: FeatureMaps, *, scale: Scale = Scale.CHANNEL, colours: str = "viridis") -> Pixels:
    """(H, W, 3): every shown channel with its caption, below what is said of them."""
    lines = maps.axes.layout == "NCL"
    wide, high = _LINE_SIZE if lines else (SIDE, SIDE)
    across = min(len(maps.shown), 4 if lines else 8)
    width = max(across, 4 if not lines else 2) * (wide + _GAP) - _GAP + 2 * _MARGIN
    font, small = ImageFont.load_default(13), ImageFont.load_default(11)
    made_from = f"{visible(maps.target)}, with {visible(maps.input_from)}"
    text = [row for says in (heading(maps), made_from, *sentences(maps, scale)) for row in _wrapped(says, width)]
    top = _MARGIN + len(text) * (_ROW + 2) + _GAP
    cell = high + 2 * _ROW + _GAP
    rows = -(-len(maps.shown) // across)
    paper = Image.new("RGB", (width, top + rows * cell + _MARGIN), _PAPER)
    pen = ImageDraw.Draw(paper)
    for number, row in enumerate(text):
        pen.text((_MARGIN, _MARGIN + number * (_ROW + 2)), row, fill=_INK, font=font)
    for place, number in enumerate(maps.shown):
        left, above = _MARGIN + place % across * (wide + _GAP), top + place // across * cell
        shown = enlarged(channel_pixels(maps, place, scale=scale, colours=colours), (wide, high))
        paper.paste(shown, (left, above + high - shown.height))
        ink = _MARK if is_marked(maps, number) else _INK
        for line, says in enumerate(caption(maps, number)):
            pen.text((left, above + high + 1 + line * (_ROW - 1)), says, fill=ink, font=small)
    return np.array(paper)


def enlarged(pixels: Pixels, most: tuple[int, int]) -> Image.Image:
    """As many whole pixels for each cell as fit into (width, height), so that no cell is blurred."""
    image = Image.fromarray(pixels)
    factor = max(1, min(most[0] // image.width, most[1] // image.height))
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)


def _wrapped(says: str, width: int) -> Sequence[str]:
    return textwrap.wrap(visible(says), max(20, (width - 2 * _MARGIN) // 7)) or [""]


def _range(maps: FeatureMaps, place: int, scale: Scale) -> tuple[float, float]:
    one = maps.channels[maps.shown[place]]
    low, high = (maps.low, maps.high) if scale is Scale.SHARED else (one.minimum, one.maximum)
    return (0.0, 0.0) if low is None or high is None else (low, high)


def _grey(shares: NDArray[np.float64]) -> Pixels:
    steps: Pixels = np.rint(np.clip(shares, 0.0, 1.0) * 255).astype(np.uint8)
    return np.repeat(steps[..., None], 3, axis=-1)


def _curve(values: NDArray[np.float64], low: float, high: float) -> Pixels:
    """A line from left to right; gaps, and red at the bottom, where values are not finite."""
    width, height = _LINE_SIZE
    paper = Image.new("RGB", (width, height), _GROUND)
    pen = ImageDraw.Draw(paper)
    span = high / 2 - low / 2

    def y(value: float) -> float:
        return height / 2 if span <= 0 else height - 5 - (height - 9) * (value / 2 - low / 2) / span

    if low <= 0 <= high:
        pen.line([(0, y(0)), (width, y(0))], fill=_ZERO)
    step = (width - 5) / max(1, len(values) - 1)
    before: tuple[float, float] | None = None
    for number, value in enumerate(values.tolist()):
        x = 2 + number * step
        if not np.isfinite(value):
            pen.rectangle([x - 1, height - 4, x + 1, height - 1], fill=_NOT_FINITE)
            before = None
            continue
        here = (x, y(value))
        pen.line([before or here, here], fill=_LINE, width=1)
        before = here
    return np.array(paper)
