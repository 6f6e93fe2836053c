"""Heat maps as a store keeps them: the raw map at the layer's own resolution in half precision, and what it takes to
draw it again.

A map of 7 x 7 cells is 98 bytes so, where heat at the size of the input is 200 kB. Each map is divided by its largest
magnitude first, so that nothing overflows; a number then keeps 11 binary digits. The raw map is within 2^-11 of each of
its numbers, the heat within 2^-10 (0.001) of what full precision draws.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from inspector.cam.describe import Setting, versions
from inspector.cam.engine.tensors import centres_of, enlarge, normalise
from inspector.cam.report import Crop, Explanation, LayerProposal, Score
from inspector.cam.spec import MapRequest
from inspector.findings import Finding
from inspector.reports_from_json import KEPT, report_from

_MOST_WHY = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMap:
    """One map. row: of its picture in the piece. cells: (height, width) of the raw map, size: of the heat. scale: what
    the numbers are multiplied with. raw: their bytes, float16 in the order of small machines, in base64. Other fields
    as in `Explanation`."""

    row: int
    layer: LayerProposal
    target: Score
    scores: tuple[Score, ...]
    asked: str
    pixels_of: int | None
    box: str
    place: tuple[float, float, float, float] | None
    raw_minimum: float
    raw_maximum: float
    negative_share: float
    crop: Crop
    findings: tuple[Finding, ...]
    cells: tuple[int, int]
    size: tuple[int, int]
    scale: float
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MapsOfPiece:
    """unread: (row, why) of the pictures without a map."""

    maps: tuple[StoredMap, ...]
    unread: tuple[tuple[int, str], ...]


def stored(found: Explanation, row: int) -> StoredMap:
    """The small form of one map of one layer."""
    exact = found.raw.astype(np.float64)
    finite = np.abs(exact[np.isfinite(exact)])
    scale = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    return StoredMap(
        row=row,
        layer=found.layer,
        target=found.target,
        scores=found.scores,
        asked=found.asked,
        pixels_of=found.pixels_of,
        box=found.box,
        place=found.place,
        raw_minimum=found.raw_minimum,
        raw_maximum=found.raw_maximum,
        negative_share=found.negative_share,
        crop=found.crop,
        findings=found.findings,
        cells=(found.raw.shape[0], found.raw.shape[1]),
        size=(found.heat.shape[0], found.heat.shape[1]),
        scale=scale,
        raw=base64.b64encode((exact / scale).astype("<f2").tobytes()).decode("ascii"),
    )


def raw_of(one: StoredMap) -> NDArray[np.float32]:
    """(h, w). Raises ValueError where the bytes are not as many."""
    data = base64.b64decode(one.raw, validate=True)
    cells = np.frombuffer(data, dtype="<f2").reshape(one.cells)
    return (cells.astype(np.float64) * one.scale).astype(np.float32)


def drawn(one: StoredMap, request: MapRequest, setting: Setting) -> Explanation:
    """The explanation again, its heat made from the small map. logits: of none, they are not kept.

    Raises ValueError where it is none.
    """
    raw = raw_of(one)
    field = torch.from_numpy(raw)[None]
    heat = enlarge(normalise(field), one.size, centres_of(one.layer, field, aligned=request.options.aligned))
    return Explanation(
        heat=heat[0].clamp(0, 1).numpy(),
        raw=raw,
        method=request.method,
        layer=one.layer,
        layers=(one.layer,),
        target=one.target,
        scores=one.scores,
        asked=one.asked,
        pixels_of=one.pixels_of,
        box=one.box,
        place=one.place,
        answer=setting.answer,
        options=request.options,
        raw_minimum=one.raw_minimum,
        raw_maximum=one.raw_maximum,
        negative_share=one.negative_share,
        preprocessing=setting.preprocessing,
        crop=one.crop,
        findings=one.findings,
        versions=versions(),
        seconds=0.0,
    )


def packed_maps(piece: MapsOfPiece) -> bytes:
    """One line, the same bytes for the same maps."""
    told = dataclasses.asdict(piece)
    told["unread"] = [(row, why[:_MOST_WHY]) for row, why in piece.unread]
    return json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def unpacked_maps(data: bytes, rows: int) -> MapsOfPiece | None:
    """None for what are no maps of so many pictures."""
    try:
        found = report_from(MapsOfPiece, json.loads(data), KEPT)
        places = [*(one.row for one in found.maps), *(row for row, _ in found.unread)]
        for one in found.maps:
            raw_of(one)
    except (ValueError, TypeError, RecursionError):
        return None
    return found if sorted(places) == list(range(rows)) else None
