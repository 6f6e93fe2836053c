"""Trust in a map as it is drawn on a page: the verdict of each measure in words, the curves, the files."""

from __future__ import annotations

import math

from inspector.cam.methods import method_named
from inspector.cam.trust import verdicts
from inspector.cam.trust.assess import CENTRE, EDGES, RANDOM, Row, Trust
from inspector.cam.trust.measures import MEASURES
from inspector.cam.trust.pictures import TrustOfPictures
from inspector.render.json import as_json
from inspector.render.panels import Curves, MeasureLine, PicturesPanel, TrustPanel
from inspector.render.trust_files import trust_csv
from inspector.render.trust_pictures import listings, sentences, trust_of_pictures_csv

_WORDS = {RANDOM: "noise", CENTRE: "blob in the middle", EDGES: "edges of the picture"}
_MASK_MEASURES = (
    ("energy", "Energy in the mask", "Share of the heat that lies on the thing.", True),
    ("pointing", "Pointing game", "1 where the hottest place lies on the thing, else 0.", True),
)
_CURVES = (
    ("insertion", "Insertion", "share of pixels put in, the hottest first"),
    ("deletion", "Deletion", "share of pixels taken away, the hottest first"),
)


def trust_panel(found: Trust) -> TrustPanel:
    """Of one map."""
    measures = [(m.id, m.title, m.says, m.higher) for m in MEASURES] + list(_MASK_MEASURES)
    share = found.answer != "numbers"
    agreement = found.agreement if found.agreement is not None and len(found.agreement.methods) > 1 else None
    return TrustPanel(
        summary=verdicts.summary(found),
        heads=tuple(_WORDS.get(row.of, "this map") for row in found.rows),
        lines=tuple(filter(None, (_line(found, *measure) for measure in measures))),
        refused=tuple(why for _, why in found.refused),
        curves=tuple(filter(None, (_curves(found.rows, *curve, share=share) for curve in _CURVES))),
        void=found.void,
        forgetting=verdicts.forgetting(found) if found.stages else "",
        forgotten=tuple((float(stage.modules), stage.correlation) for stage in found.stages),
        layer=found.layer,
        agreement=None
        if agreement is None
        else (
            tuple(method_named(name).title for name in agreement.methods),
            tuple(tuple(row) for row in agreement.correlations),
        ),
        csv=trust_csv(found),
        json=as_json(found),
    )


def pictures_panel(found: TrustOfPictures) -> PicturesPanel:
    """Of several pictures."""
    return PicturesPanel(
        sentences=sentences(found), listings=listings(found), csv=trust_of_pictures_csv(found), json=as_json(found)
    )


def _line(found: Trust, name: str, title: str, says: str, higher: bool | None) -> MeasureLine | None:
    values = [dict(row.values).get(name) for row in found.rows]
    if values[0] is None:
        return None
    spreads = [dict(row.spreads).get(name) for row in found.rows]
    alone = all(value is None for value in values[1:])
    margins = [verdicts.margin(row, name) for row in found.rows[1:]]
    verdict = verdicts.steadiness(values[0]) if alone else verdicts.standing(values, higher, margins)
    if verdicts.still(found) and not alone:
        verdict = "says nothing: the answer hardly depends on the picture"
    cells = tuple((_number(value), _spread(spread)) for value, spread in zip(values, spreads, strict=True))
    return MeasureLine(title=title, says=says, cells=cells, verdict=verdict)


def _curves(rows: tuple[Row, ...], which: str, title: str, x: str, *, share: bool) -> Curves | None:
    lines = [(_WORDS.get(row.of, "this map"), dict(row.curves).get(which, ())) for row in rows]
    lines = [(name, points) for name, points in lines if points]
    if not lines:
        return None
    y = "probability" if share else "score"
    return Curves(key=which, title=title, x=x, y=y, limited=share, lines=tuple(lines))


def _spread(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"± {value:.3f}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    # No minus before what rounds to nothing.
    return "none" if math.isnan(value) else f"{round(value, 3) + 0.0:.3f}"
