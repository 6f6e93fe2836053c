"""The plainest lines of Python that rename as a plan does, found by trying them on the plan's own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

from inspector.keys.report import RuleUse
from inspector.keys.rules.entry import Phrase, Rule


def plainest_phrases(
    uses: Sequence[RuleUse], renamed: Mapping[str, str], *, rules: Sequence[Rule], most: int
) -> tuple[tuple[Phrase, ...], dict[str, str]]:
    """(the first of the best combinations, what it leaves wrong) among each rule's ways to write its renaming.

    renamed: what is to become of each name. most: how many combinations are tried.
    """
    by_id = {rule.id: rule for rule in rules}

    def position(use: RuleUse) -> tuple[int, bool]:
        # Segments are dropped before others are added.
        return by_id[use.id].renames, "add" in dict(use.parameters)

    ways = [phrases(use) for use in sorted(uses, key=position) if (phrases := by_id[use.id].phrases) is not None]
    best: tuple[tuple[Phrase, ...], dict[str, str]] = ((), {old: new for old, new in renamed.items() if old != new})
    for combination in islice(product(*ways), most):
        if not best[1]:
            break
        wrong: dict[str, str] = {}
        for old, new in renamed.items():
            if _written(old, combination) != new:
                wrong[old] = new
                if len(wrong) == len(best[1]):
                    break
        if len(wrong) < len(best[1]):
            best = (combination, wrong)
    return best


def _written(name: str, combination: Sequence[Phrase]) -> str:
    for phrase in combination:
        name = phrase.apply(name)
    return name
