"""What is noticed of the numbers that the checkpoints of a run state: learning rates that jump, losses that leap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Finding, FindingKind, Severity
from inspector.run.report import RunReport

RUN_RATE_RAISED = FindingKind("run-rate-raised", Severity.INFO, "The learning rate was raised again")
RUN_RATE_JUMP = FindingKind("run-rate-jump", Severity.WARNING, "The learning rate jumps up", also=(Severity.NOTICE,))
RUN_LOSS_LEAP = FindingKind("run-loss-leap", Severity.WARNING, "The loss leaps up")

# A rate that was lowered counts as raised again from twice of it on: cycles and restarts do more, noise less.
_RAISED = 2.0
# A rate jumps from ten times of one on that was even before, within a half; a rise of so much over a warm-up is even
# nowhere. More than a quarter of the members are peaks of cycles.
_JUMP, _EVEN, _CYCLES = 10.0, 1.5, 0.25
# A loss of one batch may be thrice that of another. Above all before it as well, so that noise about a loss that has
# become small is none.
_LEAP = 5.0
_RATES = ("lr", "learning_rate")
_LISTED = 3


def jumps(report: RunReport) -> Iterator[Finding]:
    """The first rate that jumps: of several groups, all usually do together."""
    leaps = {at for _, loss in _losses(report) for at in _leap_places(loss)}
    for rate in _rates(report):
        places = _jump_places(rate)
        for at in places[:_LISTED]:
            name, times = report.members[at].name, float(rate[at] / rate[at - 1])
            after = rate[at + 1] if at + 1 < len(rate) else np.nan
            back = bool(after * _JUMP <= rate[at])
            # One member before a peak may be the beginning of a cycle; where the loss leaps too, it is none.
            sure = back and (at in leaps or _is_even(rate, at))
            again = " again" if _EVEN * after >= rate[at - 1] else ""
            rest = f", and is {after:.3g}{again} in {report.members[at + 1].name}" if back else ""
            remedy = (
                "Look at the loss and the update of the weights there: a step so large may undo what was learned."
                if sure
                else "Look at the loss there. A cycle of which few checkpoints were kept does so, and a warm-up that "
                "a decay follows."
                if back
                else "Look at the loss there. A schedule that was made anew when training was resumed does so, and a "
                "warm-up with one rate until its end."
            )
            yield RUN_RATE_JUMP.found(
                f"The learning rate jumps from {rate[at - 1]:.3g} to {rate[at]:.3g} ({times:.3g} times) in {name}"
                f"{rest}.",
                severity=None if sure else Severity.NOTICE,
                subjects=(name,),
                evidence=(("before", float(rate[at - 1])), ("rate", float(rate[at])), ("times", times)),
                remedy=remedy,
            )
        if places:
            return


def raised(report: RunReport) -> Iterator[Finding]:
    """A rate that had gone down and goes up."""
    rates = _rates(report)
    if not rates:
        return
    rate = rates[0]
    jumped = {at for one in rates for at in _jump_places(one)}
    for at in range(2, len(rate)):
        if at in jumped:
            continue
        highest = np.nanmax(rate[:at]) if not np.isnan(rate[:at]).all() else np.nan
        if rate[at - 1] < highest and rate[at] >= _RAISED * rate[at - 1] > 0:
            yield RUN_RATE_RAISED.found(
                f"The learning rate went down to {rate[at - 1]:.3g} and is {rate[at]:.3g} again in "
                f"{report.members[at].name}: a warm restart, or the training was begun anew from there.",
                subjects=(report.members[at].name,),
                evidence=(("before", float(rate[at - 1])), ("rate", float(rate[at]))),
            )
            return


def loss_leaps(report: RunReport) -> Iterator[Finding]:
    """Of the first loss that leaps."""
    for name, loss in _losses(report):
        places = _leap_places(loss)
        for at in places[:_LISTED]:
            member, before, times = report.members[at].name, report.members[at - 1].name, float(loss[at] / loss[at - 1])
            later = loss[at + 1] if at + 1 < len(loss) else np.nan
            rest = f", and is {later:.4g} in {report.members[at + 1].name}" if not np.isnan(later) else ""
            yield RUN_LOSS_LEAP.found(
                f"The loss ({name}) leaps from {loss[at - 1]:.4g} to {loss[at]:.4g} ({times:.3g} times) in "
                f"{member}{rest}.",
                subjects=(member,),
                evidence=(("before", float(loss[at - 1])), ("loss", float(loss[at])), ("times", times)),
                remedy=f"Look at the learning rate, the gradients and the data there. {before} is the last before it.",
            )
        if places:
            return


def _rates(report: RunReport) -> list[NDArray[np.float64]]:
    return [one.array for one in report.stated if one.name.rpartition(".")[2] in _RATES]


def _losses(report: RunReport) -> list[tuple[str, NDArray[np.float64]]]:
    """Of the names whose last word is "loss": "best_loss_epoch" is none."""
    return [(one.name, one.array) for one in report.stated if one.name.lower().endswith("loss")]


def _is_even(rate: NDArray[np.float64], at: int) -> bool:
    """Whether the two members before it have about one rate. A comparison with what is not stated is False."""
    if at < 2:
        return False
    return bool(0 < rate[at - 2] <= _EVEN * rate[at - 1] and rate[at - 1] <= _EVEN * rate[at - 2])


def _is_peak(rate: NDArray[np.float64], at: int) -> bool:
    """Whether it falls at once to where it had come from: a decay behind a warm-up stays above it."""
    if at + 1 >= len(rate):
        return False
    return bool(rate[at - 1] > 0 and rate[at + 1] * _JUMP <= rate[at] and rate[at + 1] ** 2 <= rate[at - 1] * rate[at])


def _jump_places(rate: NDArray[np.float64]) -> list[int]:
    """Where it is ten times what it was, from an even one or for one member; none where it goes up and down by
    cycles."""
    found = [
        at
        for at in range(1, len(rate))
        if rate[at] >= _JUMP * rate[at - 1] and (_is_even(rate, at) or _is_peak(rate, at))
    ]
    # One peak of three members is more than a quarter of them.
    return found if len(found) <= max(1.0, _CYCLES * len(rate)) else []


def _leap_places(loss: NDArray[np.float64]) -> list[int]:
    """Where it is five times what it was and above all before; none where it does so again and again."""
    found = [
        at
        for at in range(1, len(loss))
        if loss[at - 1] > 0 and loss[at] >= _LEAP * loss[at - 1] and loss[at] > np.nanmax(loss[:at])
    ]
    return found if len(found) <= max(1.0, _CYCLES * len(loss)) else []
