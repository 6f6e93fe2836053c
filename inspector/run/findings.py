"""What is noticed of a run: where NaN began, what never moved or stopped, places and weights that repeat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Finding, FindingKind, Severity, ranked
from inspector.run.groups import Group, series_of
from inspector.run.report import Measure, RunReport
from inspector.units import counted, human_share

RUN_NOT_FINITE = FindingKind("run-not-finite", Severity.ERROR, "NaN or infinity came into the run")
RUN_LEFT_OUT = FindingKind("run-left-out", Severity.WARNING, "Files were left out of the run")
RUN_UNMOVED = FindingKind("run-unmoved", Severity.NOTICE, "Learned tensors that no step moved")
RUN_LATE = FindingKind("run-late", Severity.INFO, "Tensors that moved only later")
RUN_STOPPED = FindingKind("run-stopped", Severity.NOTICE, "Tensors that stopped moving")
RUN_REPEATED = FindingKind("run-repeated", Severity.NOTICE, "The same weights were stored twice")
RUN_GAP = FindingKind("run-gap", Severity.NOTICE, "A gap in what the checkpoints count")
RUN_SAME_PLACE = FindingKind("run-same-place", Severity.NOTICE, "Checkpoints state the same place in the training")
RUN_RATE_RAISED = FindingKind("run-rate-raised", Severity.INFO, "The learning rate was raised again")
RUN_RATE_JUMP = FindingKind("run-rate-jump", Severity.WARNING, "The learning rate jumps up", also=(Severity.NOTICE,))
RUN_LEAP = FindingKind("run-leap", Severity.WARNING, "Weights that the training before does not lead to")

_SUBJECTS = 200
# A gap is so many times the usual distance; three distances are needed to know what is usual.
_GAP, _USUAL = 3.0, 3
# A rate that was lowered counts as raised again from twice of it on: cycles and restarts do more, noise less.
_RAISED = 2.0
# Two unrelated sets of weights differ in the sign of half of their numbers. Members that were trained one from the
# other seldom in a tenth; where most of the run's are below that, one above three tenths is no step of the training.
_UNRELATED, _RELATED = 0.3, 0.1
# A rate jumps from ten times of one on that was even before, within a half; a rise of so much over a warm-up is even
# nowhere. More than a quarter of the members are peaks of cycles.
_JUMP, _EVEN, _CYCLES = 10.0, 1.5, 0.25
_RATES = ("lr", "learning_rate")
_LISTED = 3


def find(report: RunReport) -> tuple[Finding, ...]:
    """Of a report in which all is measured, worst first."""
    makers = (_not_finite, _left_out, _movements, _repeated, _gaps, _same_place, _jumps, _raised, _leaps)
    return ranked(finding for make in makers for finding in make(report))


def learned(report: RunReport) -> Group:
    """The tensors that an optimizer moves, all of them where none is one."""
    rows = tuple(row for row, tensor in enumerate(report.tensors) if tensor.is_learned)
    return Group(name="learned", rows=rows or tuple(range(len(report.tensors))))


def _not_finite(report: RunReport) -> Iterator[Finding]:
    found = report.series(Measure.NOT_FINITE)
    bad = np.flatnonzero(np.nansum(found, axis=0) > 0)
    if not len(bad):
        return
    at = int(bad[0])
    rows = np.flatnonzero(found[:, at] > 0)
    names = [report.tensors[row].name for row in rows]
    member = report.members[at]
    numbers = int(found[rows, at].sum())
    where = (
        f"it began in {names[0]}, in {numbers:,} of {counted(report.tensors[rows[0]].numel, 'number')}"
        if len(rows) == 1
        else f"in {len(rows):,} of {counted(len(report.tensors), 'tensor')} at once, in the file's order first in "
        f"{names[0]}"
    )
    before = (
        f"{report.members[at - 1].name} before it is finite"
        if at
        else "it is the first checkpoint of the run, so that the step that brought it is not here"
    )
    yield RUN_NOT_FINITE.found(
        f"NaN or infinity is first in {member.name}: {where}; {before}.",
        subjects=names[:_SUBJECTS],
        evidence=(("member", member.name), ("tensors", len(rows)), ("numbers", numbers), ("members", len(bad))),
        remedy="Go on from the last finite checkpoint, with a lower learning rate or clipped gradients."
        if at
        else "Look for an earlier checkpoint.",
    )


def _left_out(report: RunReport) -> Iterator[Finding]:
    for broken, verb in ((True, "could not be read"), (False, "belong to something else")):
        left = [one for one in report.left_out if one.broken is broken]
        if left:
            shown = "; ".join(f"{one.name}: {one.why.rstrip('.')}" for one in left[:_LISTED])
            verb = verb.replace("belong ", "belongs ") if len(left) == 1 else verb
            more = f"; and {len(left) - _LISTED:,} more" if len(left) > _LISTED else ""
            yield RUN_LEFT_OUT.found(
                f"{counted(len(left), 'file')} {verb} and {'is' if len(left) == 1 else 'are'} no part of this: "
                f"{shown}{more}.",
                subjects=[one.name for one in left[:_SUBJECTS]],
                evidence=(("files", len(left)), ("broken", broken)),
                remedy="Copy them again from where they were written." if broken else "",
            )


def _movements(report: RunReport) -> Iterator[Finding]:
    """By tensor: never, only from a member on, or only up to one."""
    rows = [row for row, tensor in enumerate(report.tensors) if tensor.is_learned]
    moved = report.series(Measure.MOVED)[rows]
    steps = np.flatnonzero((moved > 0).any(axis=0))
    if not len(steps):
        return
    # What is not known at some member may have moved there.
    known: NDArray[np.bool_] = np.logical_not(np.isnan(moved[:, 1:]).any(axis=1))
    never = [rows[i] for i in range(len(rows)) if known[i] and not (moved[i] > 0).any()]
    if never:
        names = [report.tensors[row].name for row in never]
        yield RUN_UNMOVED.found(
            f"No step moved {len(never):,} of {counted(len(rows), 'learned tensor')}, first {names[0]}.",
            subjects=names[:_SUBJECTS],
            evidence=(("tensors", len(never)), ("of", len(rows))),
            remedy="Frozen layers are so. Otherwise the optimizer was not given them, or no gradient reaches them.",
        )
    late: defaultdict[int, list[int]] = defaultdict(list)
    ended: defaultdict[int, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        own = np.flatnonzero(moved[i] > 0)
        if not known[i] or not len(own):
            continue
        if own[0] > steps[0]:
            late[int(own[0])].append(row)
        if own[-1] < steps[-1]:
            ended[int(own[-1])].append(row)
    for at, which in sorted(late.items())[:_LISTED]:
        names = [report.tensors[row].name for row in which]
        yield RUN_LATE.found(
            f"{counted(len(which), 'tensor')}, first {names[0]}, moved for the first time up to "
            f"{report.members[at].name}; others moved from {report.members[int(steps[0])].name} on.",
            subjects=names[:_SUBJECTS],
            evidence=(("member", report.members[at].name), ("tensors", len(which))),
        )
    for at, which in sorted(ended.items())[:_LISTED]:
        names = [report.tensors[row].name for row in which]
        yield RUN_STOPPED.found(
            f"{counted(len(which), 'tensor')}, first {names[0]}, did not move any more after "
            f"{report.members[at].name}; others moved up to {report.members[int(steps[-1])].name}.",
            subjects=names[:_SUBJECTS],
            evidence=(("member", report.members[at].name), ("tensors", len(which))),
            remedy="Layers that were frozen on the way are so. Otherwise look at their gradients.",
        )


def _repeated(report: RunReport) -> Iterator[Finding]:
    moved = report.series(Measure.MOVED)
    same = [
        at
        for at in range(1, len(report.members))
        if (moved[:, at] == 0).any() and not (np.isnan(moved[:, at]) | (moved[:, at] > 0)).any()
    ]
    if same:
        pairs = [f"{report.members[at].name} and {report.members[at - 1].name}" for at in same]
        more = f", and {counted(len(same) - 1, 'further pair')} of neighbours" if len(same) > 1 else ""
        yield RUN_REPEATED.found(
            f"{pairs[0]} hold the same weights{more}: no tensor moved between them.",
            subjects=[report.members[at].name for at in same[:_SUBJECTS]],
            evidence=(("pairs", len(same)),),
            remedy="A copy of the best or the last checkpoint is so. Otherwise the training stood still.",
        )


def _gaps(report: RunReport) -> Iterator[Finding]:
    if report.axis == "checkpoint" or len(report.members) <= _USUAL:
        return
    apart = np.diff(report.places)
    usual = float(np.median(apart))
    for at in np.flatnonzero(apart > _GAP * usual)[:_LISTED]:
        a, b = report.members[int(at)], report.members[int(at) + 1]
        yield RUN_GAP.found(
            f"Between {a.name} and {b.name} lie {apart[at]:.12g} {report.axis}s, usually {usual:.12g}.",
            subjects=(a.name, b.name),
            evidence=(("apart", float(apart[at])), ("usual", usual)),
            remedy="Checkpoints in between may have been deleted, or lie elsewhere.",
        )


def _same_place(report: RunReport) -> Iterator[Finding]:
    named: defaultdict[str, list[str]] = defaultdict(list)
    for member in report.members:
        if member.place.says:
            named[member.place.says].append(member.name)
    for says, names in [(says, names) for says, names in named.items() if len(names) > 1][:_LISTED]:
        yield RUN_SAME_PLACE.found(
            f"{counted(len(names), 'checkpoint')} state {says}: {', '.join(names[:_LISTED])}"
            f"{' ...' if len(names) > _LISTED else ''}. Their names order them.",
            subjects=names[:_SUBJECTS],
            evidence=(("checkpoints", len(names)),),
        )


def _rates(report: RunReport) -> list[NDArray[np.float64]]:
    return [one.array for one in report.stated if one.name.rpartition(".")[2] in _RATES]


def _jump_places(rate: NDArray[np.float64]) -> list[int]:
    """Where it is ten times what it was at two members in a row; none where it goes up and down by cycles."""
    # A comparison with what is not stated is False.
    found = [
        at
        for at in range(2, len(rate))
        if 0 < rate[at - 2] <= _EVEN * rate[at - 1] and rate[at - 1] <= _EVEN * rate[at - 2]
        if rate[at] >= _JUMP * rate[at - 1]
    ]
    return found if len(found) <= _CYCLES * len(rate) else []


def _jumps(report: RunReport) -> Iterator[Finding]:
    """The first rate that jumps: of several groups, all usually do together."""
    for rate in _rates(report):
        places = _jump_places(rate)
        for at in places[:_LISTED]:
            name, times = report.members[at].name, float(rate[at] / rate[at - 1])
            after = rate[at + 1] if at + 1 < len(rate) else np.nan
            back = bool(after * _JUMP <= rate[at])
            rest = f", and is {after:.3g} again in {report.members[at + 1].name}" if back else ""
            yield RUN_RATE_JUMP.found(
                f"The learning rate jumps from {rate[at - 1]:.3g} to {rate[at]:.3g} ({times:.3g} times) in {name}"
                f"{rest}.",
                severity=None if back else Severity.NOTICE,
                subjects=(name,),
                evidence=(("before", float(rate[at - 1])), ("rate", float(rate[at])), ("times", times)),
                remedy="Look at the loss there. A schedule that was made anew when training was resumed does so, and a "
                "warm-up with one rate until its end."
                if not back
                else "Look at the loss and the update of the weights there: a step so large may undo what was learned.",
            )
        if places:
            return


def _raised(report: RunReport) -> Iterator[Finding]:
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


def _leaps(report: RunReport) -> Iterator[Finding]:
    flips: NDArray[np.float64] = series_of(report, learned(report), Measure.FLIPS)
    update = series_of(report, learned(report), Measure.UPDATE)
    known = flips[~np.isnan(flips)]
    if len(known) < _USUAL or np.median(known) >= _RELATED:
        return
    for at in np.flatnonzero(flips > _UNRELATED)[:_LISTED]:
        member, before = report.members[int(at)], report.members[int(at) - 1]
        yield RUN_LEAP.found(
            f"From {before.name} to {member.name} {human_share(float(flips[at]))} of the numbers change their sign, "
            f"usually {human_share(float(np.median(known)))}: one is not trained from the other.",
            subjects=(member.name,),
            evidence=(("flips", float(flips[at])), ("usual", float(np.median(known))), ("update", float(update[at]))),
            remedy="It may be of another run, or begun anew from other weights.",
        )
