"""What the files of a run state and what was logged beside them, as curves: the most telling ones first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from inspector.render.panels import Points
from inspector.run.report import RunReport

# Points of a log that are drawn; a screen has not that many columns.
_MOST_POINTS = 1000
_PLACES = ("epoch", "step", "global_step", "iteration", "iter")
_WORDS = re.compile(r"[a-z]+[0-9]?|[0-9]+")
# What people look at first, in this order, by words of the name.
_FIRST = (
    ("loss", "nll", "perplexity", "ppl"),
    ("acc", "acc1", "accuracy", "top1", "f1", "auc", "map", "iou", "psnr", "bleu", "score", "error", "wer"),
    ("lr",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One number over the run. name: as its files call it. log: the event files it is of, "" for what checkpoints
    state. axis: what x counts."""

    name: str
    log: str
    axis: str
    points: Points

    @property
    def logged(self) -> bool:
        """Whether event files say so, not the checkpoints."""
        return bool(self.log)


def is_telling(name: str) -> bool:
    """Not where the file stands, which is the axis."""
    return name not in _PLACES and "last_epoch" not in name


def curves_of(report: RunReport) -> tuple[Curve, ...]:
    """Losses, scores, learning rates, then the rest; of equal ones, what the checkpoints state first."""
    places = report.places.tolist()
    found = [
        Curve(name=one.name, log="", axis=report.axis, points=tuple(zip(places, one.array.tolist(), strict=True)))
        for one in report.stated
        if is_telling(one.name)
    ]
    for log in report.logs:
        for series in log.scalars:
            step = -(-len(series) // _MOST_POINTS) or 1
            # From the end, so that the last point is drawn.
            points = list(islice(series, (len(series) - 1) % step, None, step))
            drawn = tuple((float(at), value) for at, value, _ in points)
            found.append(Curve(name=series.tag, log=log.name, axis="step", points=drawn))
    return tuple(sorted(found, key=_rank))


def _rank(curve: Curve) -> int:
    words = set(_WORDS.findall(curve.name.lower()))
    return next((n for n, kind in enumerate(_FIRST) if words.intersection(kind)), len(_FIRST))
