"""What is noticed of a run: where NaN began, what never moved or stopped, places and weights that repeat.

What the stated numbers do is in `spikes`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Finding, FindingKind, Severity, ranked
from inspector.run.groups import Group, series_of
from inspector.run.report import Measure, RunReport
from inspector.run.spikes import jumps, loss_leaps, raised
from inspector.units import counted, human_share

RUN_NOT_FINITE = FindingKind("run-not-finite", Severity.ERROR, "NaN or infinity came into the run")
RUN_LEFT_OUT = FindingKind("run-left-out", Severity.WARNING, "Files were left out of the run")
RUN_UNMOVED = FindingKind("run-unmoved", Severity.NOTICE, "Learned tensors that no step moved")
RUN_LATE = FindingKind("run-late", Severity.INFO, "Tensors that moved only later")
RUN_STOPPED = FindingKind("run-stopped", Severity.NOTICE, "Tensors that stopped moving")
RUN_REPEATED = FindingKind("run-repeated", Severity.NOTICE, "The same weights were stored twice")
RUN_GAP = FindingKind("run-gap", Severity.NOTICE, "A gap in what the checkpoints count")
RUN_SAME_PLACE = FindingKind("run-same-place", Severity.NOTICE, "Checkpoints state the same place in the training")
RUN_LEAP = FindingKind("run-leap", Severity.WARNING, "Weights that the training before does not lead to")

_SUBJECTS = 200
# A gap is so many times the usual distance; three distances are needed to know what is usual.
_GAP, _USUAL = 3.0, 3
# Two unrelated sets of weights differ in the sign of half of their numbers. Members that were trained one from the
# other seldom in a tenth; where most of the run's are below that, one above three tenths is no step of the training.
_UNRELATED, _RELATED = 0.3, 0.1
_LISTED = 3


def find(report: RunReport) -> tuple[Finding, ...]:
    """Of a report in which all is measured, worst first."""
    makers = (_not_finite, _left_out, _movements, _repeated, _gaps, _same_place, jumps, raised, loss_leaps, _leaps)
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
