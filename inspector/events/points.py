"""One value of a summary as a point of its series: histograms, curves, images, texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inspector.events.messages import Event, SummaryValue, read_histogram, read_image
from inspector.events.report import CurvePoint, HistogramPoint, ImageAt, ImagePoint, TextPoint
from inspector.events.tensors import MOST_NUMBERS, STRING, numbers_of, read_tensor
from inspector.readers.flat import whole_text

AnyPoint = HistogramPoint | CurvePoint | ImagePoint | TextPoint
_IMAGE, _HISTOGRAM, _TENSOR = 4, 5, 8
_CURVE_ROWS = 6
_MOST_IMAGES = 64
#: Of one step's texts.
TEXT_NBYTES = 1 << 16
_POINT_COST, _IMAGE_COST = 300, 120
# A size in front of an image is written as text.
_MOST_DIGITS = 9


class Place(NamedTuple):
    """Where a record's data lie: the number of the file, and the offset in it."""

    file: int
    offset: int


def cost_of(point: AnyPoint) -> int:
    """Bytes of memory that it takes, about."""
    if isinstance(point, HistogramPoint):
        return _POINT_COST + len(point.buckets)
    if isinstance(point, CurvePoint):
        return _POINT_COST + len(point.rows)
    if isinstance(point, ImagePoint):
        return _POINT_COST + _IMAGE_COST * len(point.images)
    return _POINT_COST + 2 * sum(map(len, point.texts))


def _histogram(value: SummaryValue, event: Event, data: bytes, place: Place) -> HistogramPoint | None:
    if value.kind == _TENSOR:
        found = numbers_of(data, read_tensor(data, *value.span))
        if found is None or found.ndim != 2 or found.shape[1] != 3:
            return None
    elif value.kind == _HISTOGRAM:
        older = _older_buckets(value, data)
        if older is None:
            return None
        found = older
    else:
        return None
    return HistogramPoint(step=event.step, wall_time=event.wall_time, buckets=found.tobytes())


def _older_buckets(value: SummaryValue, data: bytes) -> NDArray[np.float64] | None:
    """(n, 3) of a HistogramProto, without the empty buckets at both ends, whose edges may be as far as floats go; the
    outermost edges are then the least and the largest value. As TensorBoard's data_compat has it."""
    low, high, edge_places, count_places = read_histogram(data, value.span)
    rights, counts = _doubles(data, edge_places), _doubles(data, count_places)
    if rights is None or counts is None or len(rights) != len(counts):
        return None
    filled = np.flatnonzero(counts > 0)
    if not len(filled):
        return np.zeros((0, 3))
    first, last = int(filled[0]), int(filled[-1])
    inner = rights[first:last]
    lefts, rights = np.concatenate([[low], inner]), np.concatenate([inner, [high]])
    return np.stack([lefts, rights, counts[first : last + 1]], axis=1)


def _doubles(data: bytes, places: list[tuple[int, int]]) -> NDArray[np.float64] | None:
    if sum(end - start for start, end in places) > 8 * MOST_NUMBERS:
        return None
    return np.frombuffer(b"".join(data[start:end] for start, end in places), "<f8").astype(np.float64)


def _curve(value: SummaryValue, event: Event, data: bytes, place: Place) -> CurvePoint | None:
    found = numbers_of(data, read_tensor(data, *value.span)) if value.kind == _TENSOR else None
    if found is None or found.ndim != 2 or found.shape[0] != _CURVE_ROWS or not found.shape[1]:
        return None
    return CurvePoint(
        step=event.step,
        wall_time=event.wall_time,
        thresholds=found.shape[1],
        rows=np.ascontiguousarray(found).tobytes(),
    )


def _image(value: SummaryValue, event: Event, data: bytes, place: Place) -> ImagePoint | None:
    width = height = 0
    if value.kind == _IMAGE:
        width, height, span = read_image(data, value.span)
        spans = [span]
    elif value.kind == _TENSOR:
        tensor = read_tensor(data, *value.span)
        if tensor.dtype != STRING or tensor.too_many or len(tensor.strings) < 2:
            return None
        width, height = (_digits(data[start:end]) for start, end in tensor.strings[:2])
        spans = tensor.strings[2 : 2 + _MOST_IMAGES]
    else:
        return None
    images = tuple(
        ImageAt(file=place.file, offset=place.offset + start, nbytes=end - start, width=width, height=height)
        for start, end in spans
    )
    return ImagePoint(step=event.step, wall_time=event.wall_time, images=images)


def _digits(raw: bytes) -> int:
    return int(raw) if raw.isdigit() and len(raw) <= _MOST_DIGITS else 0


def _text(value: SummaryValue, event: Event, data: bytes, place: Place) -> TextPoint | None:
    tensor = read_tensor(data, *value.span) if value.kind == _TENSOR else None
    if tensor is None or tensor.dtype != STRING or tensor.too_many:
        return None
    texts: list[str] = []
    room = TEXT_NBYTES
    for start, end in tensor.strings:
        if room <= 0:
            break
        texts.append(whole_text(data[start : min(end, start + room)]))
        room -= end - start
    nbytes = sum(end - start for start, end in tensor.strings)
    return TextPoint(step=event.step, wall_time=event.wall_time, texts=tuple(texts), nbytes=nbytes)


#: How the values of a plugin become points; None for one that is not as the plugin has them.
MAKERS: Mapping[str, Callable[[SummaryValue, Event, bytes, Place], AnyPoint | None]] = {
    "histograms": _histogram,
    "pr_curves": _curve,
    "images": _image,
    "text": _text,
}
