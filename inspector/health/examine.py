"""Reads every number once and asks every check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.findings import Finding, ranked
from inspector.gc_pause import without_collecting
from inspector.health.checks import CHECKS
from inspector.health.masks import with_masks
from inspector.health.phrases import listed, reported
from inspector.health.report import HealthReport
from inspector.health.spectra import measure_spectra
from inspector.health.subject import Subject, examined
from inspector.health.thresholds import DEFAULTS, Thresholds
from inspector.progress import Progress, silent
from inspector.weights.measure import Reader, Readings, read_tensors

_MOST_SETS = 16


def examine(
    checkpoint: Checkpoint,
    state: StateDict | None = None,
    *,
    thresholds: Thresholds = DEFAULTS,
    whole: bool = True,
    spectra: bool = False,
    workers: int = 1,
    read: Reader = read_tensors,
    progress: Progress = silent,
) -> HealthReport:
    """What the numbers of a state dict say (the file's weights when not given).

    whole: what else the file holds (an optimizer's moments, other sets of weights) is read too, for the checks that
    compare. spectra: the singular values of every weight too, at a hundred times the time of all other checks.
    workers: threads that read side by side. read: who reads the numbers of all tensors, in place of one pass here.
    progress counts bytes, then, from nought again, the elements of matrices. Raises only what progress and read raise.
    """
    states = (state or checkpoint.weights,)
    ((_, report),) = examine_sets(
        checkpoint,
        states,
        thresholds=thresholds,
        whole=whole,
        spectra=spectra,
        workers=workers,
        read=read,
        progress=progress,
    )
    return report


def examine_sets(
    checkpoint: Checkpoint,
    states: Sequence[StateDict | None] | None = None,
    *,
    thresholds: Thresholds = DEFAULTS,
    whole: bool = True,
    spectra: bool = False,
    digested: Callable[[Callable[[TensorInfo], tuple[str, bool]]], None] | None = None,
    workers: int = 1,
    read: Reader = read_tensors,
    progress: Progress = silent,
) -> tuple[tuple[StateDict | None, HealthReport], ...]:
    """The same of several state dicts, each number read once: of the file's `weight_sets` when not given.

    None stands for all tensors, as where there is no set. At most 16 are examined: of more, the report of the first
    says so. digested: given what says the digest of a tensor's bytes,
    and whether all its elements are one value, once all were read.
    """
    states = (checkpoint.weight_sets or (None,)) if states is None else states
    shown = states[:_MOST_SETS]
    own = [tensor for state in shown for tensor in (state or checkpoint).tensors]
    paths = {tensor.path for tensor in own}
    rest = [tensor for tensor in checkpoint.tensors if tensor.path not in paths] if whole else []
    everything = [*own, *rest]
    if digested is None:
        readings = read(checkpoint, everything, workers=workers, progress=progress)
    else:
        readings = read_tensors(checkpoint, everything, digests=True, workers=workers, progress=progress)
        digested(readings.digest)
    found = [(state, judge(checkpoint, state, readings, thresholds=thresholds)) for state in shown]
    if spectra:
        found = [(s, add_spectra(h, checkpoint, s, thresholds=thresholds, progress=progress)) for s, h in found]
    if len(states) > len(shown):
        first, report = found[0]
        left = (f"{len(states) - len(shown):,} further sets of weights", f"the file holds {len(states):,} of them")
        found[0] = first, replace(report, not_examined=(*report.not_examined, left))
    return tuple(found)


def add_spectra(
    health: HealthReport,
    checkpoint: Checkpoint,
    state: StateDict | None = None,
    *,
    thresholds: Thresholds = DEFAULTS,
    progress: Progress = silent,
) -> HealthReport:
    """The report with the singular values, their findings and what they passed over; as `examine` with `spectra`."""
    found = measure_spectra(checkpoint, state, thresholds=thresholds, progress=progress)
    return replace(
        health,
        spectra=found,
        findings=ranked((*health.findings, *found.findings)),
        not_examined=(*health.not_examined, *found.not_examined),
    )


@without_collecting()
def judge(
    checkpoint: Checkpoint, state: StateDict | None, readings: Readings, *, thresholds: Thresholds = DEFAULTS
) -> HealthReport:
    """The checks over what was read: of a state dict, and of the rest of the file."""
    own = (state or checkpoint).tensors
    paths = {tensor.path for tensor in own}
    report = replace(readings.report(own), state_dict=state.path if state else ())
    beyond = readings.report(tensor for tensor in checkpoint.tensors if tensor.path not in paths)
    subject = Subject(
        checkpoint=checkpoint,
        state=state,
        tensors=examined(own, {one.path: one for one in report.tensors}),
        report=report,
        others={one.path: one for one in beyond.tensors},
        thresholds=thresholds,
    )
    subject = with_masks(subject)
    return HealthReport(
        weights=report,
        findings=reported(_found(subject)),
        roles=tuple((one.name, one.role) for one in subject.tensors),
        not_examined=(*report.skipped, *beyond.skipped, *_left_out(subject)),
        beyond=len(beyond.tensors),
        beyond_skipped=beyond.skipped,
    )


def _found(subject: Subject) -> Iterator[Finding]:
    """What the checks find in their order. What a finding explains (`FindingKind.explains`) is not said again of the
    tensors that it names: they have no numbers for it."""
    explained: dict[str, frozenset[str]] = defaultdict(frozenset)
    for check in CHECKS:
        # Nearly always one: nothing is explained.
        for names in dict.fromkeys(explained[kind.id] for kind in check.kinds):
            kinds = {kind.id: kind for kind in check.kinds if explained[kind.id] == names}
            for finding in check.find(subject.without(names)):
                if finding.id in kinds:
                    yield finding
                    for other in kinds[finding.id].explains:
                        explained[other] |= {*finding.subjects}


def _left_out(subject: Subject) -> Iterator[tuple[str, str]]:
    for why, names in subject.left_out.items():
        if names:
            yield listed(tuple(names)), why
