"""What of a diagnosis stays unsolved: the one list that the page and the command line both show."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.keys.report import KeyReport


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOver:
    """Names that the plan does not settle; of a refused file, what keeps it from loading as it is.

    missing: the target's. initial: those of them that a partial plan leaves at the model's initial value, on purpose.
    unexpected: the file's. reshaped: (name, shape in the file, shape in the target).
    """

    missing: tuple[str, ...]
    initial: tuple[str, ...]
    unexpected: tuple[str, ...]
    reshaped: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]

    @property
    def nothing(self) -> bool:
        """Whether everything has its place."""
        return not (self.missing or self.initial or self.unexpected or self.reshaped)


def left_over(report: KeyReport) -> LeftOver:
    """Of a plan what its steps do not reach; without one the file as it is."""
    plan = report.plan
    if plan is None:
        return LeftOver(missing=report.missing, initial=(), unexpected=report.unexpected, reshaped=report.reshaped)
    settled = {source for step in plan.steps for source in step.sources}.union(plan.others, plan.odd_keys)
    filled = {step.target for step in plan.steps}
    return LeftOver(
        missing=() if plan.partial else plan.missing,
        initial=plan.missing if plan.partial else (),
        unexpected=tuple(name for name in report.unexpected if name not in settled),
        reshaped=tuple(entry for entry in report.reshaped if entry[0] not in settled and entry[0] not in filled),
    )
