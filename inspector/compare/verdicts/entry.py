"""What a verdict is: one question to a finished comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inspector.compare.report import Diff, Relation, TensorDiff, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictEntry:
    """id: what reports call it. title: a few words. says: when it is said, for the documentation.

    decide: the verdict, None where it does not hold. It is given the tensors, totals and others of the comparison; the
    verdicts are still empty. settles: it leaves nothing about the numbers to be explained.
    """

    id: str
    title: str
    says: str
    decide: Callable[[Diff], Verdict | None]
    settles: bool = False


def of_relation(diff: Diff, *relations: Relation) -> tuple[TensorDiff, ...]:
    """The tensors of these relations."""
    return tuple(tensor for tensor in diff.tensors if tensor.relation in relations)
