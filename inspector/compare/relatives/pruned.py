"""A pruned copy: some elements became zero; the others are as they were, or were trained further."""

from __future__ import annotations

from inspector.compare.relatives.subject import Matrix, Relative, Relatives
from inspector.compare.report import Relation, TensorDiff, Verdict
from inspector.units import counted

# Fewer zeros than this share of the tensors that have them are no pruning.
_LEAST_SHARE = 0.05
# A centred cosine in units of what chance gives, and by itself.
_Z, _COSINE = 10.0, 0.1


def _decide(subject: Relatives) -> Verdict | None:
    cut = tuple(t for t in subject.weights if t.numbers is not None and t.numbers.zeroed)
    n = sum(t.numbers.n for t in cut if t.numbers is not None)
    zeroed = sum(t.numbers.zeroed for t in cut if t.numbers is not None)
    if not cut or not subject.rest_is_same or zeroed < _LEAST_SHARE * n:
        return None
    others = tuple(t for t in subject.changed if t not in cut)
    kept = all(_kept(subject, t) for t in cut) and all(t.relation is not Relation.CHANGED for t in others)
    by = _chosen_by(subject, cut)
    what = f"{zeroed:,} elements ({zeroed / n:.1%}) of {counted(len(cut), 'tensor')} became zero, {by}"
    names = tuple(t.name for t in cut)
    if kept:
        return Verdict(
            id=RELATIVE.id,
            title=RELATIVE.title,
            says=f"A pruned copy, not trained since: {what}; every other element is as it was.",
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
    lowest = min(c for c, _ in cosines)
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"Like a pruned copy that was trained further: {what}; the other elements changed, and the tensors still "
        f"point the same way (centred cosine of at least {lowest:.2f}).",
        proved=False,
        test="zeros where the first has none, and the centred cosine of those tensors",
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
    says="Elements became zero: 5 % or more of the tensors that have such. Proved where every other element is as it "
    "was; a likeness where they changed and still point the same way.",
    decide=_decide,
)
