"""A pruned copy: some elements became zero; the others are as they were, or were trained further. Asked both ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inspector.compare.numbers import PairNumbers
from inspector.compare.relatives.same_direction import LEAST_NUMEL, cosine_of_rest
from inspector.compare.relatives.subject import Matrix, Relative, Relatives, Two
from inspector.compare.report import Relation, TensorDiff, Verdict
from inspector.units import counted, human_share

# Fewer zeros than this share of the tensors that have them are no pruning.
_LEAST_SHARE = 0.05
# Matrices, the largest first, of which one has zeros where the other has none, if any has.
_TRIED = 8
# A centred cosine in units of what chance gives, and by itself.
_Z, _COSINE = 10.0, 0.1


def _decide(subject: Relatives) -> Verdict | None:
    if not subject.rest_is_same:
        return None
    return _one_way(subject, tuple(t for t in subject.weights if t.numbers is not None)) or _turned(subject.turned)


def _turned(subject: Relatives) -> Verdict | None:
    """Whether the first file is the one with zeros, which the comparison did not count."""
    measured: list[TensorDiff] = []
    for two in subject.each(tuple(sorted(subject.weights, key=_smaller))):
        if two.diff.numbers is not None:
            measured.append(replace(two.diff, numbers=_with_zeros(two, two.diff.numbers)))
        if len(measured) == _TRIED and not any(t.numbers.zeroed for t in measured if t.numbers is not None):
            return None
    kept_any = any(t.numbers is not None and t.numbers.smallest_kept is not None for t in measured)
    return _one_way(subject, tuple(measured)) if kept_any else None


def _smaller(pair: TensorDiff) -> int:
    return -pair.a.numel if pair.a is not None else 0


def _with_zeros(two: Two, numbers: PairNumbers) -> PairNumbers:
    gone, kept = (two.b == 0) & (two.a != 0), (two.b != 0) & (two.a != 0)
    sizes = np.abs(two.a)
    return replace(
        numbers,
        zeroed=int(gone.sum()),
        largest_zeroed=float(sizes[gone].max()) if gone.any() else None,
        smallest_kept=float(sizes[kept].min()) if kept.any() else None,
    )


def _one_way(subject: Relatives, weights: tuple[TensorDiff, ...]) -> Verdict | None:
    """Whether `b` is the one with zeros. weights: with what was counted of them."""
    cut = tuple(t for t in weights if t.numbers is not None and t.numbers.zeroed)
    n = sum(t.numbers.n for t in cut if t.numbers is not None)
    zeroed = sum(t.numbers.zeroed for t in cut if t.numbers is not None)
    if not cut or zeroed < _LEAST_SHARE * n:
        return None
    names = tuple(subject.name_of(t) for t in cut)
    others = tuple(t for t in subject.changed if subject.name_of(t) not in names)
    kept = all(_kept(subject, t) for t in cut) and all(t.relation is not Relation.CHANGED for t in others)
    which = f"{zeroed:,} elements ({human_share(zeroed / n)}) of {counted(len(cut), 'tensor')}"
    by = _chosen_by(subject, cut)
    what = f"{which} are zero in the first alone, {by}" if subject.is_turned else f"{which} became zero, {by}"
    if kept:
        start = "A pruned copy, the first of the two" if subject.is_turned else "A pruned copy, not trained since"
        return Verdict(
            id=RELATIVE.id,
            title=RELATIVE.title,
            says=f"{start}: {what}; every other element is {'the same in both' if subject.is_turned else 'as it was'}.",
            proved=True,
            test="every element that is not zero is equal",
            number=zeroed / n,
            threshold=_LEAST_SHARE,
            refuted_by="one element that is neither zero nor as it was",
            subjects=names,
        )
    if any(t.numbers is not None and t.numbers.rest_equal for t in cut):
        # Zeros in some, and something else in others: no training does that.
        return None
    cosines = [(c, t.numbers.finite) for t in cut if t.numbers and (c := t.numbers.centred_cosine) is not None]
    alike = sum(size for c, size in cosines if c > _COSINE and c * size**0.5 >= _Z)
    if alike < 0.8 * sum(size for _, size in cosines) or not cosines:
        return None
    # A mask or an identity that both began with gives cosines too.
    large = [t for t in cut if t.numbers is not None and t.numbers.n >= LEAST_NUMEL]
    if large and all(cosine_of_rest(two) is None for two in subject.each(tuple(large))):
        return None
    lowest = min(c for c, _ in cosines)
    start = "Like a pruned copy, the first of the two," if subject.is_turned else "Like a pruned copy"
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"{start} that was trained further: {what}; the other elements changed, and the tensors still point the "
        f"same way (centred cosine of at least {lowest:.2f}).",
        proved=False,
        test="zeros where the other has none, and the centred cosine of those tensors",
        number=lowest,
        threshold=_COSINE,
        refuted_by="cosines that two unrelated networks have as well",
        subjects=names,
    )


def _kept(subject: Relatives, pair: TensorDiff) -> bool:
    """Whether what is not zero is as it was, after a cast where b's type is the shorter one."""
    if pair.numbers is not None and pair.numbers.rest_equal:
        return True
    if pair.a is None or pair.b is None or pair.a.dtype == pair.b.dtype:
        return False
    two = subject.two(pair)
    return two is not None and bool(((two.b == two.a) | (two.b == 0)).all())


def _chosen_by(subject: Relatives, cut: tuple[TensorDiff, ...]) -> str:
    numbers = [t.numbers for t in cut if t.numbers is not None]
    # None kept: all of the tensor went.
    each = all(
        n.largest_zeroed is not None and (n.smallest_kept is None or n.largest_zeroed <= n.smallest_kept)
        for n in numbers
    )
    if each:
        largest = [n.largest_zeroed for n in numbers if n.largest_zeroed is not None]
        kept = [n.smallest_kept for n in numbers if n.smallest_kept is not None]
        everywhere = len(numbers) > 1 and bool(kept) and max(largest) <= min(kept)
        return "the smallest of all of them" if everywhere else "the smallest of each tensor"
    if all(_in_rows(two.a, two.b) for two in subject.each(cut)):
        return "in whole rows"
    return "not the smallest ones"


def _in_rows(a: Matrix, b: Matrix) -> bool:
    gone = (b == 0) & (a != 0)
    rows = gone.any(axis=1)
    return bool((b[rows] == 0).all())


RELATIVE = Relative(
    id="pruned",
    title="Pruned copy",
    says="Elements are zero in one file alone, it is said in which: 5 % or more of the tensors that have such. Proved "
    "where every other element is equal; a likeness where they changed and still point the same way.",
    decide=_decide,
)
