"""Only these layers were trained: some tensors changed, all others are equal to the last bit.

Counters and running statistics move whenever a model runs in training mode, so they are told apart: layers whose
weights are frozen may still have them moved.
"""

from __future__ import annotations

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.compare.report import Diff, Relation, TensorDiff, Verdict
from inspector.compare.verdicts.entry import VerdictEntry, of_relation
from inspector.units import counted, human_share

_STATISTICS = ("running_mean", "running_var")
_MOST_NAMED = 6


def _decide(diff: Diff) -> Verdict | None:
    changed, same = of_relation(diff, Relation.CHANGED), of_relation(diff, Relation.SAME)
    if not changed or not same or len(changed) + len(same) < len(diff.tensors):
        return None
    # Scales of one, counters, masks and sinusoids are equal in networks that have nothing to do with each other.
    if not diff.evidence:
        return None
    trained = [t for t in changed if _is_weight(t)]
    moved = len(changed) - len(trained)
    if not trained:
        return None
    modules = tuple(dict.fromkeys(t.name.rpartition(".")[0] or t.name for t in trained))
    named = ", ".join(modules[:_MOST_NAMED]) + (
        f" and {len(modules) - _MOST_NAMED:,} more" if len(modules) > _MOST_NAMED else ""
    )
    elements = sum(t.a.numel for t in trained if t.a is not None)
    share = elements / diff.totals.parameters_a if diff.totals.parameters_a else 0.0
    differ = sum(t.numbers.changed for t in trained if t.numbers is not None)
    whose, are = ("its", "it is") if len(modules) == 1 else ("their", "they are")
    # The numbers of every one of them are known, or nothing is said of how many changed.
    count = f"{differ:,} of {whose} {elements:,} elements; " if all(t.numbers is not None for t in trained) else ""
    broken = sum(t.numbers.nan_b + t.numbers.infinite_b for t in diff.tensors if t.numbers is not None)
    odd = ""
    if broken:
        count_of_broken = counted(broken, "number that is not finite", "numbers that are not finite")
        odd = f" The second file holds {count_of_broken} in what differs."
    beside = (
        f", beside {counted(moved, 'running statistic or counter', 'running statistics and counters')}" if moved else ""
    )
    rest = "tensor is" if len(same) == 1 else f"{counted(len(same), 'tensor')} are"
    return Verdict(
        id=VERDICT.id,
        title=VERDICT.title,
        says=f"Only {counted(len(modules), 'layer')} changed: {named} ({count}{are} {human_share(share)} "
        f"of all elements{beside}); the other {rest} equal to the last bit.{odd}",
        proved=True,
        test="the bytes of every other tensor",
        number=share,
        threshold=None,
        refuted_by="one of the other tensors, if it differed",
        subjects=modules,
    )


def _is_weight(tensor: TensorDiff) -> bool:
    last = tensor.name.rpartition(".")[2]
    return last not in _STATISTICS and not is_bookkeeping(last)


VERDICT = VerdictEntry(
    id="only-some",
    title="Only some layers changed",
    says="Some tensors changed, and every other one is equal to the last bit; among these is a weight, since masks and "
    "sinusoids are equal in any two networks.",
    decide=_decide,
)
