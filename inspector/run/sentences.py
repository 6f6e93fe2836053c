"""The answer about a run in a sentence or two."""

from __future__ import annotations

import numpy as np

from inspector.findings import Severity
from inspector.run.findings import RUN_LEAP, RUN_NOT_FINITE, RUN_UNMOVED, learned
from inspector.run.groups import distance_from_first
from inspector.run.report import RunReport
from inspector.run.spikes import RUN_LOSS_LEAP, RUN_RATE_JUMP
from inspector.units import counted, human_count, human_distance

# What the weights and the training did; files that were left out are counted beside.
_OF_THE_COURSE = (RUN_LEAP.id, RUN_LOSS_LEAP.id, RUN_RATE_JUMP.id)


def say(report: RunReport) -> str:
    """What the run is, and the worst or the most telling of it."""
    if len(report.members) < 2:
        left = f" {counted(len(report.left_out), 'other file')} {_be(len(report.left_out))} none of it."
        return (
            f"No run: {report.members[0].name} has nothing beside it to be held against."
            f"{left if report.left_out else ''}"
        )
    numbers = sum(tensor.numel for tensor in report.tensors)
    what = (
        f"{counted(len(report.members), 'checkpoint')} of {counted(len(report.tensors), 'tensor')} "
        f"({human_count(numbers)} numbers), {_order(report)}"
    )
    course = _course(report)
    worst = next((f.says for f in report.findings if f.id in _OF_THE_COURSE and f.severity is Severity.WARNING), "")
    if not worst or report.findings[0].severity is Severity.ERROR:
        return f"{what}: {course}."
    return f"{what}: {worst[0].lower()}{worst[1:]} {course[0].upper()}{course[1:]}."


def _order(report: RunReport) -> str:
    if report.ordered_by == "name":
        return "in the order of their names, since not all state an epoch or a step"
    first, last = report.members[0].at, report.members[-1].at
    if report.axis == "checkpoint":
        return f"in the order of the {report.ordered_by} that they state"
    return f"{report.axis} {first:.12g} to {last:.12g}"


def _course(report: RunReport) -> str:
    for finding in report.findings:
        if finding.id == RUN_NOT_FINITE.id:
            return finding.says.rstrip(".")
    group = learned(report)
    distance = distance_from_first(report, group)
    known = distance[~np.isnan(distance)]
    if not len(known) or not known.any():
        return "all numbers are finite, and nothing moved"
    unmoved = next((finding for finding in report.findings if finding.id == RUN_UNMOVED.id), None)
    still = f"{len(group.rows):,} learned tensors moved" if unmoved is None else _unmoved(unmoved.evidence)
    return (
        f"all numbers are finite, {still}; the last is {human_distance(float(known[-1]))} of the first's norm away "
        "from it (relative L2)"
    )


def _unmoved(evidence: tuple[tuple[str, str | int | float | bool], ...]) -> str:
    numbers = dict(evidence)
    return f"{numbers['tensors']:,} of {numbers['of']:,} learned tensors never moved"


def _be(n: int) -> str:
    return "is" if n == 1 else "are"
