"""A codebook of which a few codes do all the work: vector quantisation that has collapsed.

van den Oord et al. 2017 (1711.00937), appendix A.1, keep for each code how many vectors it was the nearest of
(N, averaged over steps) and their sum. A code that nothing comes near never moves again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import shown
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.units import human_share
from inspector.weights.rows import row_largest

COLLAPSED = FindingKind(
    "codebook-collapsed", Severity.WARNING, "Most codes of a codebook are not used", also=(Severity.NOTICE,)
)

_COUNTS = re.compile(
    r"_?(ema_)?(cluster_size|cluster_usage|code_count|codebook_usage|usage|ema_count|N)", re.IGNORECASE
)
_BOOK = re.compile(r"quanti[sz]|codebook|(^|[._])vq", re.IGNORECASE)
_WORDS = ("quanti", "codebook", "vq")
_LEAST = 8
# A code with less than this part of an even share of the vectors is not used; from which share of such codes on it is
# said, and is a warning.
_UNUSED, _SAID, _WARNED = 0.01, 0.5, 0.9
_REMEDY = (
    "The encoder's answers fall on a few codes, and the rest never move again: restart unused codes from vectors of a "
    "batch, begin the codebook by k-means, or weaken the commitment loss. Right after the start of a training it may "
    "still spread."
)


def _find(subject: Subject) -> Iterator[Finding]:
    for one, t in subject.measured_called(_COUNTS.fullmatch):
        # As long as it begins, or was reset, every count is the same.
        if not t.finite or t.minimum < 0 or t.minimum == t.maximum:
            continue
        book = _book(subject, one)
        counts = subject.array(one) if book is not None else None
        if book is None or counts is None or counts.size < _LEAST or not np.isfinite(counts).all():
            continue
        sizes = counts.reshape(-1, counts.shape[-1]).sum(axis=0)
        unused = int((sizes < _UNUSED * sizes.mean()).sum())
        if unused > _SAID * len(sizes):
            yield _finding(one, book, sizes, unused)
    yield from _never_moved(subject)


def _never_moved(subject: Subject) -> Iterator[Finding]:
    """Codes without counters, which begin uniformly in +-1 / codes: those that are still inside, beside others."""
    for one, t in subject.measured(Role.EMBEDDING, Role.LINEAR, Role.OTHER):
        rows = t.rows
        if rows is None or rows.count < _LEAST or len(t.shape) != 2 or t.finite < t.numel or not _is_book(one.name):
            continue
        largest, bound = row_largest(rows), 1 / rows.count
        # Rows of 8 numbers come near their bound.
        inside = int(((largest <= bound * (1 + 1e-6)) & (largest > bound / 2)).sum())
        if _SAID * rows.count < inside < rows.count and rows.length >= _LEAST:
            yield COLLAPSED.found(
                f"{inside:,} of {rows.count:,} codes of {shown(one.name)} ({human_share(inside / rows.count)}) are "
                f"still within {bound:.3g}, where they begin, and the others have moved up to {largest.max():.3g}.",
                severity=Severity.WARNING if inside >= _WARNED * rows.count else Severity.NOTICE,
                subjects=[one.name],
                evidence=(("unused", inside), ("codes", rows.count), ("bound", bound), ("threshold", _WARNED)),
                remedy=_REMEDY,
            )


def _is_book(name: str) -> bool:
    """Whether it is called one. Most names hold no word that could be in a match, which is asked much faster."""
    lowered = name.lower()
    return any(word in lowered for word in _WORDS) and _BOOK.search(name) is not None


def _book(subject: Subject, one: Examined) -> Examined | None:
    """What has a row or a column for each of the counts, in the same module or the one around it."""
    size = one.tensor.shape[-1] if one.tensor.shape else 0
    around = one.module.rpartition(".")[0]
    beside = [*subject.by_module.get(one.module, ()), *subject.by_module.get(around, ())]
    below = [other for other in subject.tensors if other.module.rpartition(".")[0] == one.module]
    return next(
        (o for o in (*beside, *below) if len(o.tensor.shape) > 1 and size in o.tensor.shape and o.floating), None
    )


def _finding(one: Examined, book: Examined, sizes: NDArray[np.float64], unused: int) -> Finding:
    shares = sizes[sizes > 0] / sizes.sum()
    perplexity = math.exp(-float((shares * np.log(shares)).sum()))
    return COLLAPSED.found(
        f"{unused:,} of {len(sizes):,} codes of {shown(book.name)} ({human_share(unused / len(sizes))}) are not used: "
        f"by {shown(one.name)} the others are worth {perplexity:.3g} codes used evenly (perplexity).",
        severity=Severity.WARNING if unused >= _WARNED * len(sizes) else Severity.NOTICE,
        subjects=[book.name, one.name],
        evidence=(
            *(("unused", unused), ("codes", len(sizes)), ("perplexity", perplexity)),
            ("threshold", _WARNED),
        ),
        remedy=_REMEDY,
    )


CHECK = Check(kinds=(COLLAPSED,), find=_find)
