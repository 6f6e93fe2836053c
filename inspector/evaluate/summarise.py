"""From scores and class folders to an evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inspector.cam.trust.intervals import Interval, wilson
from inspector.evaluate import metrics
from inspector.evaluate.curves import area_under_roc, average_precision, precision_recall, roc, steps_of, thinned
from inspector.evaluate.labels import Listing
from inspector.evaluate.mapping import ClassMap
from inspector.evaluate.metrics import Counts
from inspector.evaluate.report import (
    ClassCurves,
    ClassFigures,
    Confused,
    Evaluated,
    Evaluation,
    Means,
    PictureResult,
)
from inspector.progress import Progress, silent
from inspector.units import counted

MOST_CURVES = 30
MOST_WORST = 24
_TOP = 5
Numbers = NDArray[np.float64]


def summarise(
    values: NDArray[np.float32],
    unread: Sequence[tuple[int, str]],
    listing: Listing,
    mapping: ClassMap,
    checkpoint: Evaluated,
    *,
    progress: Progress = silent,
) -> Evaluation:
    """values: (N, K) scores in the order of the listing. unread: (position, why) of rows that hold none."""
    gone = {position for position, _ in unread}
    kept = np.array([n for n in range(len(listing.paths)) if n not in gone], dtype=np.int64)
    scores = values[kept] if gone else values
    labels = np.array([mapping.indices[listing.labels[n]] for n in kept], dtype=np.int64)
    places = metrics.ranks(scores, labels)
    answered = metrics.answers(scores, labels, places)
    sums, good = metrics.log_sums(scores), metrics.finite(scores)
    own, sure = (np.where(good, metrics.shares_at(scores, sums, at), math.nan) for at in (labels, answered))
    rows = tuple(
        PictureResult(path=listing.paths[n], label=label, answer=answer, rank=rank, share=share, confidence=confidence)
        for n, label, answer, rank, share, confidence in zip(
            kept.tolist(),
            labels.tolist(),
            answered.tolist(),
            places.tolist(),
            own.tolist(),
            sure.tolist(),
            strict=True,
        )
    )
    counts = metrics.counts_of(labels, answered, len(mapping.names))
    figures, curves = _classes(scores[good], sums[good], labels[good], counts, (listing, mapping), progress)
    ties = int(metrics.tied(scores[good], labels[good]).sum())
    wrong = sorted((row for row in rows if not row.right), key=_surest_first)
    return Evaluation(
        checkpoint=checkpoint,
        data=listing.name,
        data_digest=listing.digest,
        mapping=mapping,
        pictures=len(rows),
        top1=wilson((places == 1).astype(float).tolist()),
        top5=wilson((places <= _TOP).astype(float).tolist()) if len(mapping.names) > _TOP else None,
        ties=ties,
        not_finite=int((~good).sum()),
        classes=figures,
        means=_means(figures),
        confused=tuple(
            Confused(label=label, answer=answer, pictures=pictures)
            for label, answer, pictures in metrics.confusions(labels, answered, len(mapping.names))
        ),
        calibration=metrics.calibration(sure[good], (places == 1)[good]),
        curves=curves,
        worst=tuple(wrong[:MOST_WORST]),
        rows=rows,
        unread=tuple((listing.paths[position], why) for position, why in unread),
        left_out=listing.left_out,
        left_out_count=listing.left_out_count,
        empty=listing.empty,
        notes=_notes(listing, mapping, ties, int((~good).sum())),
    )


def _surest_first(row: PictureResult) -> tuple[float, str]:
    return (-row.confidence if math.isfinite(row.confidence) else -math.inf, row.path)


def _classes(
    scores: NDArray[np.float32],
    sums: Numbers,
    labels: NDArray[np.int64],
    counts: Sequence[Counts],
    named: tuple[Listing, ClassMap],
    progress: Progress,
) -> tuple[tuple[ClassFigures, ...], tuple[ClassCurves, ...]]:
    """Of every class that has a folder or was answered. scores: finite rows."""
    listing, mapping = named
    folders = {index: listing.classes[number] for number, index in enumerate(mapping.indices)}
    figures: list[ClassFigures] = []
    for index, count in enumerate(counts):
        if index not in folders and not count.answered:
            continue
        # The pictures are all done: it is only asked whether to go on.
        progress(len(labels), len(labels), "curves")
        steps = steps_of(metrics.shares_of(scores, sums, index), labels == index)
        figures.append(
            ClassFigures(
                index=index,
                name=mapping.names[index],
                folder=folders.get(index, ""),
                support=count.support,
                answered=count.answered,
                right=count.right,
                precision=count.precision,
                recall=count.recall,
                recall_interval=_interval(count),
                f1=count.f1,
                average_precision=average_precision(steps),
                area_under_roc=area_under_roc(steps),
            )
        )
    shown = sorted(
        (one for one in figures if one.support), key=lambda one: (_low_first(one.average_precision), one.index)
    )
    curves = []
    for one in shown[:MOST_CURVES]:
        steps = steps_of(metrics.shares_of(scores, sums, one.index), labels == one.index)
        drawn = thinned(*precision_recall(steps)), thinned(*roc(steps))
        curves.append(ClassCurves(index=one.index, precision_recall=drawn[0], roc=drawn[1]))
    return tuple(figures), tuple(curves)


def _low_first(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def _interval(count: Counts) -> Interval:
    return wilson([1.0] * count.right + [0.0] * (count.support - count.right))


def _means(figures: Sequence[ClassFigures]) -> Means:
    there = [one for one in figures if one.support]

    def mean(values: Sequence[float]) -> float:
        numbers = [value for value in values if math.isfinite(value)]
        return math.fsum(numbers) / len(numbers) if numbers else math.nan

    return Means(
        classes=len(there),
        precision=mean([one.precision if one.answered else 0.0 for one in there]),
        recall=mean([one.recall for one in there]),
        f1=mean([one.f1 for one in there]),
        average_precision=mean([one.average_precision for one in there]),
        area_under_roc=mean([one.area_under_roc for one in there]),
    )


def _notes(listing: Listing, mapping: ClassMap, ties: int, not_finite: int) -> tuple[str, ...]:
    """What was counted how, each a sentence."""
    notes = []
    if ties:
        tie = counted(ties, "picture has", "pictures have")
        notes.append(f"{tie} the same score for the right class and another one, the highest: counted as wrong.")
    if not_finite:
        many = counted(not_finite, "picture has", "pictures have")
        notes.append(f"{many} a score that is no finite number: counted as wrong, left out of curves and calibration.")
    if listing.empty:
        notes.append(
            f"{counted(len(listing.empty), 'class folder holds', 'class folders hold')} no picture "
            f"({', '.join(one[:40] for one in listing.empty[:5])}): a class all the same, as ImageFolder has it with "
            "allow_empty."
        )
    if mapping.missing:
        notes.append(
            f"{counted(len(mapping.missing), 'output has', 'outputs have')} no class folder "
            f"({', '.join(mapping.names[index][:40] for index in mapping.missing[:5])}): answers of them are wrong, "
            "and of their recall nothing is said."
        )
    return tuple(notes)
