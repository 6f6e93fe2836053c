"""Whole weights that are equal, though the file stores them twice: copied layers, or one written over another.

Their statistics agree in every digit; then they are read again and compared. New transformers of torch begin with equal
layers (they are deep copies of one), deeper models are made by repeating blocks, a teacher begins as its student, and
experts as one layer: all of these copy whole blocks. A single equal tensor in blocks that differ otherwise was copied
by mistake.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.equality import Budget, are_equal, ends_shared, likely_copies, same_place
from inspector.health.phrases import shown
from inspector.health.roles import LAYERS
from inspector.health.subject import Subject

COPIED_LAYERS = FindingKind(
    "copied-layers",
    Severity.NOTICE,
    "Layers are exact copies of others",
    also=(Severity.WARNING,),
    explains=("equal-weights-stored-twice",),
)

# Parts of one module that torch keeps under names of their own.
_PARTS = re.compile(r"weight_(ih|hh|hr)_l\d+(_reverse)?|[qkv]_proj_weight")
# Fewest blocks of a series of which one may be called a mistake.
_SERIES = 4
# Of a block whose weights are equal to this part, the whole block was copied.
_BLOCK = 0.5
# Of fewer values tensors are equal because they were made so: windows, constants.
_FEW = 8
# Segments of a name that are looked at.
_DEEPEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """equal, of: the weights of both blocks that are equal, and that both have, counted by name."""

    name: str
    source: str
    nbytes: int
    verified: bool
    equal: int = 0
    of: int = 0


def _find(subject: Subject) -> Iterator[Finding]:
    pairs = tuple(_pairs(subject))
    if not pairs:
        return
    blocks = _Blocks(subject, {(name, source) for name, source, _, _ in pairs})
    groups: dict[Severity, list[_Copy]] = defaultdict(list)
    for name, source, nbytes, verified in pairs:
        same, both = blocks.compare(name, source)
        copy = _Copy(name=name, source=source, nbytes=nbytes, verified=verified, equal=same, of=both)
        alone = verified and (0 < same <= _BLOCK * both or blocks.is_next(name, source))
        groups[Severity.WARNING if alone else Severity.NOTICE].append(copy)
    for severity, copies in groups.items():
        yield _finding(severity, copies)


def _pairs(subject: Subject) -> Iterator[tuple[str, str, int, bool]]:
    """(name, the first that equals it, bytes, whether they were compared)."""
    budget = Budget(subject.thresholds.compared_nbytes)
    columns = subject.columns
    fit = subject.among(*LAYERS) & (columns.numel >= subject.thresholds.few) & (columns.distinct > _FEW)
    measured = [(one.tensor, t) for one, t in subject.those(ends_shared(columns, fit))]
    for first, *others in likely_copies(measured):
        for other in others:
            equal = not same_place(first, other) and are_equal(subject.checkpoint, first, other, budget)
            if equal is not False:
                yield other.name, first.name, other.nbytes, equal is True
    subject.leave_out(budget.why, budget.left_out)


class _Blocks:
    """Which weights lie below a segment of a name, and how many of two blocks' are equal."""

    def __init__(self, subject: Subject, equal: set[tuple[str, str]]) -> None:
        self._equal = equal
        self._below: dict[str, set[str]] = defaultdict(set)
        self._known: dict[tuple[str, str], tuple[int, int]] = {}
        for one, t in subject.measured(*LAYERS):
            if t.numel >= subject.thresholds.few:
                segments = one.name.split(".")
                for depth in range(min(len(segments) - 1, _DEEPEST) + 1):
                    head = ".".join(segments[:depth])
                    self._below[head].add(one.name[len(head) :].lstrip("."))

    def compare(self, name: str, source: str) -> tuple[int, int]:
        """(weights that are equal, weights that both have) in the blocks of two equal weights.

        The blocks are what lies below the one segment in which their names differ; where that is the layer's own
        ("conv1" and "conv2"), what lies beside it. (0, 0) where nothing can be told.
        """
        a, b = name.split("."), source.split(".")
        place = _difference(a, b)
        if place is None:
            return 0, 0
        if place == len(a) - 1:
            # Directions and layers of one recurrent module, and its projections, are drawn one by one.
            within = _PARTS.fullmatch(a[-1]) and _PARTS.fullmatch(b[-1])
            return (1, len(self._below[".".join(a[:-1])])) if within else (0, 0)
        if place == len(a) - 2:
            # Numbered layers of a list, and a teacher beside its student, may begin as copies.
            if place == 0 or a[place].isdecimal() or b[place].isdecimal():
                return 0, 0
            return 1, len(self._below[".".join(a[:place])])
        heads = ".".join(a[: place + 1]), ".".join(b[: place + 1])
        if heads not in self._known:
            both = self._below[heads[0]] & self._below[heads[1]]
            same = sum((f"{heads[0]}.{each}", f"{heads[1]}.{each}") in self._equal for each in both)
            self._known[heads] = same, len(both)
        return self._known[heads]

    def is_next(self, name: str, source: str) -> bool:
        """Whether a whole block is a copy of the one before it, and no other block of the series is any other's:
        deeper models are made by repeating many."""
        a, b = name.split("."), source.split(".")
        place = _difference(a, b)
        if place is None or place >= len(a) - 1 or not (a[place].isdecimal() and b[place].isdecimal()):
            return False
        if abs(int(a[place]) - int(b[place])) != 1:
            return False
        head, same = ".".join(a[:place]), self.compare(name, source)
        series = {path.split(".")[0] for path in self._below[head]} if head in self._below else set()
        copied = {tuple(sorted((x.split(".")[place], y.split(".")[place]))) for x, y in self._equal if _in(head, x, y)}
        return same[0] == same[1] > 1 and len(copied) == 1 and len([n for n in series if n.isdecimal()]) >= _SERIES


def _in(head: str, name: str, source: str) -> bool:
    """Whether both lie below it, in different blocks."""
    start = f"{head}." if head else ""
    return (
        name.startswith(start)
        and source.startswith(start)
        and name[len(start) :].split(".")[0] != source[len(start) :].split(".")[0]
    )


def _difference(a: Sequence[str], b: Sequence[str]) -> int | None:
    """The one segment in which two names differ; None where they do in more, or are too deep."""
    places = [i for i, (left, right) in enumerate(zip(a, b, strict=False)) if left != right]
    return places[0] if len(a) == len(b) and len(places) == 1 and len(a) <= _DEEPEST else None


def _finding(severity: Severity, copies: Sequence[_Copy]) -> Finding:
    first = copies[0]
    more = f"; {len(copies) - 1:,} more are copies of another" if len(copies) > 1 else ""
    sure = "the same as" if first.verified else "the same in every statistic as"
    return COPIED_LAYERS.found(
        f"{shown(first.name)} is {sure} {shown(first.source)}, though stored a second time{more}.",
        severity=severity,
        subjects=[each.name for each in copies],
        evidence=(
            *(("copies", len(copies)), ("nbytes", sum(each.nbytes for each in copies))),
            *(("compared", first.verified), ("equal_in_block", first.equal), ("weights_of_block", first.of)),
            ("threshold", _BLOCK),
        ),
        remedy="Training moves two weights apart in the first step. Where the rest of the two blocks differs, or one "
        "block of many is as the one before it, it was copied by mistake (a number too low in a conversion): take it "
        "from an earlier file. Layers that share their weights on purpose are rarely shared in part."
        if severity is Severity.WARNING
        else "New transformers of torch begin with equal layers, deeper models are made by repeating blocks, and "
        "experts, teachers and target networks begin as copies. In a trained network that shares nothing, a layer was "
        "written twice.",
    )


CHECK = Check(kinds=(COPIED_LAYERS,), find=_find)
