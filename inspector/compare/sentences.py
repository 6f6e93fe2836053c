"""The answer of a comparison in one sentence: what was proved, else what differs in numbers."""

from __future__ import annotations

from inspector.compare.report import Diff, OtherChange, OtherKind, Relation, Totals, Way
from inspector.units import counted, human_distance, human_share, shorten_middle

_DIFFERENT = (
    (Relation.CHANGED, "changed"),
    (Relation.CAST, "only cast"),
    (Relation.TRUNCATED, "cut off to another type"),
    (Relation.RESHAPED, "of another shape"),
    (Relation.ADDED, "only in the second file"),
    (Relation.REMOVED, "only in the first"),
    (Relation.UNREAD, "not compared"),
)


def say(diff: Diff) -> str:
    """What the two files are to each other."""
    if diff.incomplete:
        return f"{' '.join(diff.incomplete)} {count_of(diff.totals)}{_beside(diff.others)}"
    proved = next((verdict.says for verdict in diff.verdicts if verdict.proved), "")
    if proved:
        return proved + _renamed(diff) + _beside(diff.others)
    if not diff.tensors:
        return "Neither file has tensors to compare."
    if diff.alignment.way is Way.NONE:
        return f"The two have nothing in common. {diff.alignment.says}"
    likeness = next((f" {verdict.says}" for verdict in diff.verdicts), "")
    return count_of(diff.totals) + _renamed(diff) + likeness + _beside(diff.others)


def _renamed(diff: Diff) -> str:
    """Which of the equal ones the second file calls otherwise; "" where that was proved of the whole, or of none."""
    names = [(t.a.name, t.b.name) for t in diff.tensors if t.is_only_renamed and t.a is not None and t.b is not None]
    if not names or diff.totals.count(Relation.SAME) == diff.totals.tensors:
        return ""
    (old, new), verb = names[0], "has" if len(names) == 1 else "have"
    first = f"{shorten_middle(old, 60)} is {shorten_middle(new, 60)} there"
    which = first if len(names) == 1 else f"for example {first}"
    return f" {counted(len(names), 'tensor')} with the same numbers {verb} another name in the second file: {which}."


def count_of(totals: Totals) -> str:
    """How many tensors are what, and how far they moved, as a sentence."""
    parts = [f"{totals.count(relation):,} {words}" for relation, words in _DIFFERENT if totals.count(relation)]
    same = totals.count(Relation.SAME)
    rest = f"; {same:,} {'is' if same == 1 else 'are'} the same" if same and parts else ""
    moved = ""
    if totals.relative is not None and totals.count(Relation.CHANGED):
        without = totals.without_norm
        left = (
            f" (without {counted(without, 'counter or other integer', 'counters or other integers')})"
            if without
            else ""
        )
        moved = (
            f" Over all that differ in number{left} the difference is {human_distance(totals.relative)} of the first "
            "file's norm (relative L2), "
            f"and {human_share(totals.share_changed)} of all elements compared have another value."
        )
    said = ", ".join(parts) if parts else "all the same"
    return f"Of {counted(totals.tensors, 'tensor')} {said}{rest}.{moved}"


def _beside(others: tuple[OtherChange, ...]) -> str:
    """What else differs, by kind; what is only of the container is left out."""
    kinds = [kind for kind in OtherKind if not kind.is_container and any(o.kind is kind for o in others)]
    if not kinds:
        return ""
    counts = [(kind, sum(other.kind is kind for other in others)) for kind in kinds]
    listed = ", ".join(f"{kind} ({n:,})" if n > 1 else f"{kind}" for kind, n in counts)
    return f" Beside the weights differ: {listed}."
