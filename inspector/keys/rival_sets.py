"""Which of a file's sets of weights is meant: how far each goes towards the target, and which others go as far."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.checkpoint.nested import same_numbers
from inspector.checkpoint.types import StateDict, StateRole
from inspector.keys.report import WHICH_STATE, Ambiguity, KeyReport
from inspector.units import counted

PROMISES = ("refused", "part", "fits")


def promise(report: KeyReport) -> str:
    """How far this state dict goes: to the whole target (perhaps after an answer), to a part of it, or nowhere."""
    if report.plan is None:
        return "refused"
    return "fits" if report.plan.ambiguities or not report.plan.missing else "part"


def reach(report: KeyReport) -> tuple[int, int]:
    """How far a report goes: its promise, then how little is missing."""
    missing = len(report.plan.missing) if report.plan is not None else 0
    return PROMISES.index(promise(report)), -missing


def fits_unasked(state: StateDict, report: KeyReport) -> bool:
    """Whether these are the weights, and they fit whole with nothing to ask."""
    return state.role is StateRole.WEIGHTS and report.plan is not None and report.plan.complete


def rivals_of(candidates: Sequence[StateDict], reports: Sequence[KeyReport], best: int) -> list[int]:
    """The other sets of weights that go as far as the best one and are other numbers."""
    first = reports[best]
    if first.plan is None:
        return []
    return [
        i
        for i, (state, report) in enumerate(zip(candidates, reports, strict=True))
        if i != best
        and report.plan is not None
        and promise(report) == promise(first)
        and len(report.plan.missing) == len(first.plan.missing)
        and not same_numbers(state, candidates[best])
    ]


def which_set(best: StateDict, rivals: Sequence[StateDict]) -> Ambiguity:
    """The question which of these sets is meant, the best one first."""
    options = tuple(
        (s.label, f"{counted(len(s.tensors), 'tensor')} under {s.label} ({s.role})") for s in (best, *rivals)
    )
    names = " and ".join(f'"{label}"' for label, _ in options)
    return Ambiguity(
        id=WHICH_STATE,
        question=f"{counted(len(options), 'set')} of weights in this file fit the target: {names}. Which one?",
        options=options,
    )
