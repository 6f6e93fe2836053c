"""Reads every number once and asks every check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from inspector.checkpoint.types import Checkpoint, StateDict, StateRole, TensorInfo
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

_OF_WEIGHTS = (StateRole.WEIGHTS, StateRole.EMA, StateRole.OTHER)
_MOST_SETS = 16


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


def examine_sets(
    checkpoint: Checkpoint,
    *,
    thresholds: Thresholds = DEFAULTS,
    spectra: bool = False,
    workers: int = 1,
    progress: Progress = silent,
) -> tuple[tuple[StateDict | None, HealthReport], ...]:
    """The same of every set of weights in the file (its averages, the halves of a GAN), each number read once.

    The likeliest weights come first; (None, report) of all tensors where there is no set. At most 16 are examined:
    of more, the report of the first says so.
    """
    sets = [s for s in checkpoint.state_dicts if s.role in _OF_WEIGHTS and s.tensors]
    if not sets:
        alone = examine(checkpoint, thresholds=thresholds, spectra=spectra, workers=workers, progress=progress)
        return ((None, alone),)
    sets.sort(key=lambda s: s is not checkpoint.weights)
    whole = measure_tensors(checkpoint, checkpoint.tensors, workers=workers, progress=progress)
    found = [(s, _judged_alone(checkpoint, s, whole, thresholds)) for s in sets[:_MOST_SETS]]
    if spectra:
        found = [(s, add_spectra(report, checkpoint, s, thresholds=thresholds)) for s, report in found]
    if len(sets) > _MOST_SETS:
        first, report = found[0]
        left = (f"{len(sets) - _MOST_SETS:,} further sets of weights", f"the file holds {len(sets):,} of them")
        found[0] = first, replace(report, not_examined=(*report.not_examined, left))
    return tuple(found)


def _judged_alone(
    checkpoint: Checkpoint, state: StateDict, whole: WeightsReport, thresholds: Thresholds
) -> HealthReport:
    """One set's share of what was measured."""
    names = {tensor.path: tensor.name for tensor in state.tensors}
    own = tuple(replace(s, name=names[s.path]) for s in whole.tensors if s.path in names)
    rest = tuple(s for s in whole.tensors if s.path not in names)
    read = {s.path for s in own}
    why = dict(whole.skipped)
    skipped = tuple((t.name, why.get(t.name, "It could not be read.")) for t in state.tensors if t.path not in read)
    report = replace(whole, state_dict=state.path, tensors=own, skipped=skipped)
    others = set(names.values())
    beyond = replace(whole, tensors=rest, skipped=tuple(s for s in whole.skipped if s[0] not in others))
    return judge(checkpoint, state, report, beyond, thresholds=thresholds)


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
        not_examined=(*report.skipped, *beyond.skipped, *_left_out(subject)),
        beyond=len(beyond.tensors),
        beyond_skipped=beyond.skipped,
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
