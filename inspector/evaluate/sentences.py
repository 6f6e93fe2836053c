"""What an evaluation says, the answer first: the same words on the page and on the command line."""

from __future__ import annotations

import math

from inspector.cam.trust.intervals import By, Interval
from inspector.evaluate.compare import SIGNIFICANT
from inspector.evaluate.metrics import Calibration
from inspector.evaluate.report import ClassFigures, Comparison, Evaluation
from inspector.units import counted, human_share

# A gap below this is within what few pictures give by chance.
_SMALL_GAP = 0.02


def answer(report: Evaluation) -> str:
    """ "91.2 % right (95 % interval 89.4 to 92.7 %) of 1,200 pictures. Worst class: cat, 71.0 % of 100." """
    if not report.pictures:
        return "No picture could be read, so nothing was scored."
    says = f"{human_share(report.top1.mean)} right ({interval_text(report.top1)}) of {pictures_text(report.pictures)}"
    if report.top5 is not None:
        says += f", {human_share(report.top5.mean)} among the first five"
    worst = worst_class(report)
    if worst is not None:
        says += f". Worst class: {worst.name[:80]}, {human_share(worst.recall)} of {worst.support:,}"
    return says + "."


def worst_class(report: Evaluation) -> ClassFigures | None:
    """The one with the lowest recall; None where all pictures are of one class or all are right."""
    there = [one for one in report.classes if one.support]
    if len(there) < 2 or not report.wrong:
        return None
    return min(there, key=lambda one: (one.recall, -one.support, one.index))


def details(report: Evaluation) -> tuple[str, ...]:
    """How labels were read, what was assumed, what was counted how, how sure the answers are, what is not here."""
    steps = report.checkpoint.preprocessing
    says = [report.mapping.says]
    if steps.assumed:
        says.append(f"How the model's pictures are prepared is not stated anywhere: {steps.source}.")
    says += [calibration_text(report.calibration), *report.notes]
    if report.unread:
        path, why = report.unread[0]
        says.append(
            f"{pictures_text(len(report.unread))} could not be read and {_are(len(report.unread))} not counted: "
            f"{path[:120]}: {why}"
        )
    if report.left_out_count:
        path, why = report.left_out[0]
        says.append(f"{counted(report.left_out_count, 'file or folder', 'files or folders')} left out: {path} {why}.")
    return tuple(filter(None, says))


def calibration_text(found: Calibration) -> str:
    """Whether its shares are to be believed; "" where there are none."""
    if not found.pictures:
        return ""
    gap = found.confidence - found.accuracy
    mean = f"its answers are {human_share(found.confidence)} sure on average and {human_share(found.accuracy)} right"
    size = f"expected calibration error {100 * found.error:.1f} points"
    if abs(gap) < _SMALL_GAP:
        return f"Calibration: {mean} ({size})."
    word = "Over-confident" if gap > 0 else "Under-confident"
    return f"{word}: {mean} ({size})."


def comparison_text(found: Comparison) -> str:
    """Which of two has more right, and whether that may be chance."""
    more = found.only_second - found.only_first
    split = (
        f"{pictures_text(found.only_second)} only {found.second} has right, {found.only_first:,} only {found.first}"
        f", of {found.pictures:,}"
    )
    test = f"McNemar's exact test: p = {p_text(found.p_value)}"
    if more == 0:
        return f"Equally many right: {split}. {test}."
    better, worse = (found.second, found.first) if more > 0 else (found.first, found.second)
    chance = (
        f"more than chance would do at {100 * SIGNIFICANT:.0f} %"
        if found.p_value < SIGNIFICANT
        else "which may be chance"
    )
    return f"{better} has {counted(abs(more), 'picture')} more right than {worse}, {chance}: {split}. {test}."


def p_text(p_value: float) -> str:
    """Never 0: "< 0.0001"."""
    return "< 0.0001" if p_value < 1e-4 else f"{p_value:.2g}" if p_value < 1 else "1"


def interval_text(interval: Interval) -> str:
    """ "95 % interval 89.4 % to 92.7 %"; of nothing "no interval"."""
    if interval.by is By.NONE:
        return "no interval"
    return f"95 % interval {human_share(interval.low)} to {human_share(interval.high)}"


def figure_text(value: float) -> str:
    """A share with three digits; "-" where there is none."""
    return f"{value:.3f}" if math.isfinite(value) else "-"


def pictures_text(count: int) -> str:
    """ "1,200 pictures"."""
    return counted(count, "picture")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
