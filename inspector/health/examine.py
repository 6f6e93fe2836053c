"""Reads every number once and asks every check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.findings import Finding, ranked
from inspector.health.checks import CHECKS
from inspector.health.listing import listed
from inspector.health.report import HealthReport
from inspector.health.roles import roles_of
from inspector.health.spectra import measure_spectra
from inspector.health.subject import Examined, Subject
from inspector.health.thresholds import DEFAULTS, Thresholds
from inspector.progress import Progress, silent
from inspector.weights.measure import measure_tensors, measure_weights
from inspector.weights.report import WeightsReport


def examine(
    checkpoint: Checkpoint,
    state: StateDict | None = None,
    *,
    thresholds: Thresholds = DEFAULTS,
    whole: bool = True,
    spectra: bool = False,
    workers: int = 1,
    progress: Progress = silent,
) -> HealthReport:
    """What the numbers of a state dict say (the file's weights when not given).

    whole: what else the file holds (an optimizer's moments, other sets of weights) is read too, for the checks that
    compare. spectra: the singular values of every weight too, at a hundred times the time of all other checks.
    workers: threads that read side by side. progress counts bytes, then, from nought again, the elements of matrices.
    Raises only what progress raises.
    """
    state = state or checkpoint.weights
    own = state.tensors if state else checkpoint.tensors
    places = {tensor.path for tensor in own}
    rest = tuple(t for t in checkpoint.tensors if t.path not in places) if whole else ()
    total = sum(t.nbytes for t in own) + sum(t.nbytes for t in rest)
    read = sum(t.nbytes for t in own)
    report = measure_weights(checkpoint, state, workers=workers, progress=_part(progress, 0, total))
    beyond = measure_tensors(checkpoint, rest, workers=workers, progress=_part(progress, read, total))
    health = judge(checkpoint, state, report, beyond, thresholds=thresholds)
    return add_spectra(health, checkpoint, state, thresholds=thresholds, progress=progress) if spectra else health


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


def judge(
    checkpoint: Checkpoint,
    state: StateDict | None,
    report: WeightsReport,
    beyond: WeightsReport,
    *,
    thresholds: Thresholds = DEFAULTS,
) -> HealthReport:
    """The checks over what was measured. beyond: the rest of the file."""
    subject = _subject(checkpoint, state, report, beyond, thresholds)
    found: list[Finding] = []
    for check in CHECKS:
        found += check.find(subject)
    return HealthReport(
        weights=report,
        findings=ranked(found),
        roles=tuple((one.name, one.role) for one in subject.tensors),
        not_examined=(*report.skipped, *_left_out(subject)),
        beyond=len(beyond.tensors),
    )


def _left_out(subject: Subject) -> Iterator[tuple[str, str]]:
    for why, names in subject.left_out.items():
        if names:
            yield listed(tuple(names)), why


def _subject(
    checkpoint: Checkpoint,
    state: StateDict | None,
    report: WeightsReport,
    beyond: WeightsReport,
    thresholds: Thresholds,
) -> Subject:
    tensors: tuple[TensorInfo, ...] = state.tensors if state else checkpoint.tensors
    measured = {one.path: one for one in report.tensors}
    roles = roles_of(tensors)
    return Subject(
        checkpoint=checkpoint,
        state=state,
        tensors=tuple(
            Examined(tensor=tensor, role=roles[tensor.path], statistics=measured.get(tensor.path)) for tensor in tensors
        ),
        report=report,
        others={one.path: one for one in beyond.tensors},
        thresholds=thresholds,
    )


def _part(progress: Progress, begun: int, whole: int) -> Progress:
    """Progress of one of several readings, as part of all of them."""

    def tell(done: int, total: int | None, note: str) -> None:
        progress(begun + done, whole, note)

    return tell
