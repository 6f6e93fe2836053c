"""Which known networks have the same layers in the same order, at other widths: "MobileNetV2's, half as wide".

A convolution's kernel, and whether it is depthwise, do not change with a network's width, its classes or the names of
its modules. Where the whole sequence of them is that of known networks, that is said, with what differs; failing that,
where it is without the matrices at the end, which are the head's, or where the first of them are two thirds or more of
a known one's at one ratio of the widths. Other sequences that are nearly one are not looked for.
Networks of matrices alone are all alike in this and are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from inspector.architectures.index import Entry, Index
from inspector.architectures.structure.types import Claim, Topic
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape, TensorInfo
from inspector.units import counted

# (sizes of the kernel, whether it is depthwise) of a convolution, () of a matrix.
Signature = tuple[tuple[object, ...], ...]

_LEAST_LAYERS, _LEAST_KINDS = 12, 2
# Widths are rounded to multiples of eight, in small layers by as much as a fifth.
_NEAR = 0.21
_MOST_NAMED = 3
_OF_ITS_OWN = "widths of its own"


def nearest(tensors: Sequence[TensorInfo], index: Index) -> Claim | None:
    """tensors: in the order of the file, if it keeps one. None where no known network has these layers."""
    shapes = [t.shape for t in tensors if len(t.shape) > 1 and not is_bookkeeping(t.name)]
    own = signature(shapes)
    if not _tells(own):
        return None
    whole, bodies = _by_signature(index)
    entries = whole.get(own)
    body = not entries
    entries = entries or bodies.get(_body(own))
    if not entries:
        return _beginning(own, shapes, index)
    length = len(_body(own)) if body else len(own)
    layouts = {entry.layout.number: _matrices(index, entry) for entry in entries}
    own_widths = [shape[0] for shape in shapes[:length]]
    best = min(layouts, key=lambda number: _apart(own_widths, [shape[0] for shape in layouts[number][:length]]))
    plainest = sorted({e.label for e in entries if e.layout.number == best}, key=lambda label: (len(label), label))
    named = " or ".join(plainest[:_MOST_NAMED])
    more = f" (and {len(plainest) - _MOST_NAMED:,} more)" if len(plainest) > _MOST_NAMED else ""
    known = layouts[best]
    if body:
        says = (
            f"It has the convolutions of {named}{more}, one by one, {_widths_differ(shapes[:length], known[:length])}"
        )
        says += f"{_takes_differ(shapes, known)}; behind them {_head(shapes[length:])}."
        evidence = f"all {length:,} kernels before the last matrices are of the same kind and size in the same order"
        return Claim(topic=Topic.NEAREST, says=says, evidence=evidence, value=length)
    return Claim(
        topic=Topic.NEAREST,
        says=f"It has the kernels and matrices of {named}{more}, one by one: {_differs(shapes, known)}.",
        evidence=f"all {len(own):,} kernels and matrices are of the same kind and size in the same order",
        value=len(own),
    )


def _beginning(own: Signature, shapes: Sequence[Shape], index: Index) -> Claim | None:
    """Of known networks whose first convolutions are this one's first, most of theirs, at one ratio of the widths."""
    best: tuple[int, Signature] | None = None
    for known in _by_signature(index)[1]:
        length = _common(own, known)
        if length >= _LEAST_LAYERS and 3 * length >= 2 * len(known) and (best is None or length > best[0]):
            best = (length, known)
    if best is None or not _tells(own[: best[0]]):
        return None
    length, known = best
    layouts = {entry.layout.number: _matrices(index, entry) for entry in _by_signature(index)[1][known]}
    own_widths = [shape[0] for shape in shapes[:length]]
    number = min(layouts, key=lambda one: _apart([*own_widths, 0], [*(s[0] for s in layouts[one][:length]), 0]))
    widths = _widths_differ(shapes[:length], layouts[number][:length])
    if widths == _OF_ITS_OWN:
        return None
    labels = sorted(
        {one.label for one in _by_signature(index)[1][known] if one.layout.number == number},
        key=lambda label: (len(label), label),
    )
    behind = sum(len(shape) > 2 for shape in shapes[length:])
    rest = [(behind, "convolution", ""), (len(shapes) - length - behind, "matrix", "matrices")]
    left = " and ".join(counted(number, one, many) for number, one, many in rest if number)
    return Claim(
        topic=Topic.NEAREST,
        says=f"Its first {length:,} convolutions are those of {' or '.join(labels[:_MOST_NAMED])}, which has "
        f"{len(known):,}, one by one, {widths}{_takes_differ(shapes, layouts[number])}; behind them "
        f"{f'{left} of its own' if left else 'nothing'}.",
        evidence=f"{length:,} kernels of the same kind and size in the same order",
        value=length,
    )


def _common(one: Signature, other: Signature) -> int:
    """How many of the first are equal."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _head(matrices: Sequence[Shape]) -> str:
    if not matrices:
        return "it has no matrix"
    return f"{counted(len(matrices), 'matrix', 'matrices')}, the last with {matrices[-1][0]:,} rows"


def signature(shapes: Sequence[Shape]) -> Signature:
    """What does not change with the width. One channel of the first is a grey picture's, and nothing depthwise."""
    return tuple(
        (*shape[2:], shape[1] == 1 and place > 0) if len(shape) > 2 else () for place, shape in enumerate(shapes)
    )


def _body(own: Signature) -> Signature:
    """Without the matrices at the end."""
    length = len(own)
    while length and not own[length - 1]:
        length -= 1
    return own[:length]


def _tells(own: Signature) -> bool:
    """Whether so many layers of so many kinds hardly come together by chance."""
    kernels = [one for one in own if one]
    changes = sum(a != b for a, b in pairwise(kernels))
    return len(kernels) >= _LEAST_LAYERS and len(set(kernels)) >= _LEAST_KINDS and changes >= _LEAST_KINDS


def _apart(own: Sequence[int], known: Sequence[int]) -> tuple[float, float]:
    """How unequally the widths differ, and how far. The last is left out: it gives the classes."""
    ratios = sorted(math.log(a / b) for a, b in zip(own[:-1], known[:-1], strict=True) if a and b)
    return (ratios[-1] - ratios[0], abs(ratios[len(ratios) // 2])) if ratios else (0.0, 0.0)


def _differs(own: Sequence[Shape], known: Sequence[Shape]) -> str:
    """How the widths compare, what comes in and what goes out."""
    parts = [_widths_differ(own[:-1], known[:-1]) + _takes_differ(own, known)]
    if own[-1][0] != known[-1][0]:
        parts.append(f"{own[-1][0]:,} out instead of {known[-1][0]:,}")
    return ", ".join(parts)


def _widths_differ(own: Sequence[Shape], known: Sequence[Shape]) -> str:
    ratios = sorted(a[0] / b[0] for a, b in zip(own, known, strict=True) if b[0])
    factor = ratios[len(ratios) // 2] if ratios else 1.0
    if all(ratio == 1 for ratio in ratios):
        return "as wide"
    if all(abs(ratio / factor - 1) <= _NEAR for ratio in ratios):
        return f"about {factor:.3g} times as wide"
    return _OF_ITS_OWN


def _takes_differ(own: Sequence[Shape], known: Sequence[Shape]) -> str:
    # The first takes the picture.
    if own[0][1] == known[0][1]:
        return ""
    return f", {own[0][1]:,} {'channel' if own[0][1] == 1 else 'channels'} in instead of {known[0][1]:,}"


def _matrices(index: Index, entry: Entry) -> list[Shape]:
    return [shape for shape in index.weighty_shapes(entry.layout.number) if len(shape) > 1]


@lru_cache(maxsize=1)
def _by_signature(index: Index) -> tuple[dict[Signature, tuple[Entry, ...]], dict[Signature, tuple[Entry, ...]]]:
    """(by all kernels and matrices, by those before the last matrices)"""
    whole: dict[Signature, list[Entry]] = {}
    bodies: dict[Signature, list[Entry]] = {}
    for number, entries in enumerate(index.of_layout):
        made = signature([shape for shape in index.weighty_shapes(number) if len(shape) > 1])
        if entries and _tells(made):
            whole.setdefault(made, []).extend(entries)
            bodies.setdefault(_body(made), []).extend(entries)
    return {made: tuple(found) for made, found in whole.items()}, {made: tuple(found) for made, found in bodies.items()}
