"""From a checkpoint, or from what was asked of it already, to the report about its file."""

from __future__ import annotations

import math
from collections.abc import Iterable

from inspector.architectures.types import ArchitectureSpec, Recognition, Target
from inspector.checkpoint.digest import digested, with_digest
from inspector.checkpoint.producer import producer_of
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import ExportError
from inspector.file_report.report import (
    EvidenceCount,
    FileFacts,
    FileReport,
    MapFacts,
    ModelFacts,
    ParameterFacts,
    PartFacts,
    RepairFacts,
    TensorFacts,
    TensorNumbers,
    TypeShare,
)
from inspector.findings import worst
from inspector.flops.report import CostReport
from inspector.health.report import HealthReport
from inspector.inspection import HEADER_QUESTIONS, CountedNumbers, Inspection, Question, inspect
from inspector.keys.apply import not_whole
from inspector.keys.code import python_code
from inspector.keys.placing.left_over import left_over
from inspector.keys.report import KeyReport, RepairPlan, Verification
from inspector.overview import summarise_reports
from inspector.params.report import ParameterReport
from inspector.progress import Progress, silent
from inspector.units import counted, human_bytes
from inspector.weights.fingerprint import fingerprint
from inspector.weights.report import Fingerprint, TensorStatistics

#: A proof holds all tensors of a file in memory; above this it is left to `repair`, which writes and proves piece by
#: piece.
PROVED_NBYTES = 2_000_000_000
# A picture has not more lines, and the JSON is to stay small.
_MOST_ROWS = 400
_LEFT_OVER, _VALUE = 1_000, 20_000


def make_report(
    checkpoint: Checkpoint,
    *,
    target: Target | None = None,
    state: StateDict | None = None,
    numbers: bool = True,
    progress: Progress = silent,
) -> FileReport:
    """Everything that is known of one file, to hand on.

    target: what to compare the keys with, the recognised architecture if None. state: which state dict, None for the
    likeliest. numbers: read every tensor, compute the sha256 and prove a repair; else the headers alone answer.
    What could not be asked is in `not_examined`. Raises only what progress raises, and ReadError where the file went
    away meanwhile.
    """
    if numbers:
        checkpoint = with_digest(checkpoint, progress)
    # Costs are of what the file is, whatever it is to be loaded into.
    costs = () if target is not None else (Question.COSTS,)
    questions = (*HEADER_QUESTIONS, Question.HEALTH, *costs) if numbers else HEADER_QUESTIONS
    inspection = inspect(checkpoint, questions, state=state, target=target, progress=progress)
    goal = target or _own_target(inspection.recognition)
    verification = None
    plan = inspection.keys.plan if inspection.keys else None
    if numbers and plan is not None and goal is not None and is_proved(checkpoint, plan):
        from inspector.keys.verify import verify_plan

        verification = verify_plan(checkpoint, plan, goal)
    return report_of(inspection, spec=goal.spec if goal else None, verification=verification)


def is_proved(checkpoint: Checkpoint, plan: RepairPlan) -> bool:
    """Whether a report proves this plan: a complete repair that changes something, of a whole file that fits in
    memory."""
    nbytes = sum(tensor.nbytes for tensor in checkpoint.tensors)
    return plan.complete and bool(plan.rules) and nbytes <= PROVED_NBYTES and not not_whole(checkpoint, plan)


def report_of(
    inspection: Inspection,
    *,
    spec: ArchitectureSpec | None = None,
    verification: Verification | None = None,
    maps: Iterable[MapFacts] = (),
) -> FileReport:
    """The same from what was asked already. spec: the target's. verification: of the repair in `inspection.keys`."""
    checkpoint, health = inspection.checkpoint, inspection.health
    overview = summarise_reports(inspection)
    state = _state_of(inspection)
    return FileReport(
        file=_file(checkpoint, state),
        answers=overview.answers,
        severity=worst(overview.findings),
        findings=overview.findings,
        model=_model(inspection.recognition, inspection.costs),
        claims=tuple(claim.says for claim in overview.claims),
        parameters=_parameters(inspection.parameters),
        numbers_read=health is not None,
        tensors=_tensors(state, health),
        fingerprint=_bundled(fingerprint(health.weights)) if health is not None else None,
        repair=_repair(inspection, spec, verification),
        maps=tuple(maps),
        not_examined=_not_examined(inspection),
    )


def _own_target(recognition: Recognition | None) -> Target | None:
    if recognition is None or recognition.best is None:
        return None
    from inspector.architectures.targets import target_of_candidate

    return target_of_candidate(recognition.best)


def _state_of(inspection: Inspection) -> StateDict | None:
    """The state dict that was asked about."""
    answered = inspection.recognition or inspection.parameters
    states = inspection.checkpoint.state_dicts
    asked = next((s for s in states if answered is not None and s.path == answered.state_dict), None)
    return asked or inspection.checkpoint.weights


def _file(checkpoint: Checkpoint, state: StateDict | None) -> FileFacts:
    origin = checkpoint.origin
    return FileFacts(
        name=origin.name,
        format=checkpoint.format,
        format_says=checkpoint.format_says,
        nbytes=origin.nbytes,
        sha256=origin.sha256 or "",
        digest_of=digested(checkpoint) if origin.sha256 else "",
        producer=producer_of(checkpoint),
        tensors=len(checkpoint.tensors),
        state_dict=state.path if state is not None else (),
        metadata=tuple((key[:_VALUE], value[:_VALUE]) for key, value in checkpoint.metadata),
        parts=tuple(PartFacts(name=part.name, nbytes=part.nbytes, says=part.says) for part in checkpoint.parts),
    )


def _model(recognition: Recognition | None, costs: CostReport | None) -> ModelFacts | None:
    if recognition is None or recognition.best is None:
        return None
    best = recognition.best
    counted_costs = costs if best.exact else None
    return ModelFacts(
        label=best.spec.label,
        says=recognition.answer,
        exact=best.exact,
        score=best.score,
        twins=best.twins,
        official=recognition.official.name if recognition.official else "",
        macs=counted_costs.macs if counted_costs is not None else None,
        macs_input=counted_costs.input_shape[1:] if counted_costs is not None else (),
    )


def _parameters(report: ParameterReport | None) -> ParameterFacts | None:
    if report is None:
        return None
    return ParameterFacts(
        modules=report.modules,
        dtypes=tuple(TypeShare(dtype=dtype, elements=n, nbytes=nbytes) for dtype, n, nbytes in report.dtypes),
        role_source=report.role_source,
        optimizer_nbytes=report.optimizer_nbytes,
    )


def _tensors(state: StateDict | None, health: HealthReport | None) -> tuple[TensorFacts, ...]:
    if state is None:
        return ()
    measured = {t.name: t for t in health.weights.tensors} if health is not None else {}
    roles = dict(health.roles) if health is not None else {}
    return tuple(
        TensorFacts(
            name=tensor.name,
            shape=tensor.shape,
            dtype=tensor.dtype,
            nbytes=tensor.nbytes,
            role=roles[tensor.name].value if tensor.name in roles else "",
            numbers=_numbers(measured[tensor.name]) if tensor.name in measured else None,
        )
        for tensor in state.tensors
    )


def _numbers(found: TensorStatistics) -> TensorNumbers:
    return TensorNumbers(
        minimum=_finite(found.minimum),
        maximum=_finite(found.maximum),
        mean=_finite(found.mean),
        std=_finite(found.std),
        rms=_finite(found.rms),
        nan=found.nan,
        infinite=found.infinite,
        zero=found.zero,
    )


def _finite(value: float) -> float | None:
    """Seven digits: what a float32 has, so that twenty thousand tensors stay a few megabytes."""
    return float(f"{value:.7g}") if math.isfinite(value) else None


def _bundled(strip: Fingerprint) -> Fingerprint | None:
    """At most `_MOST_ROWS` rows, each of as many neighbours as it takes, with their mean share; None without a row."""
    if not strip.names:
        return None
    step = math.ceil(len(strip.names) / _MOST_ROWS)
    names, rows = [], []
    for start in range(0, len(strip.names), step):
        some = strip.shares[start : start + step]
        names.append(strip.names[start] + (f" and {len(some) - 1} more" if len(some) > 1 else ""))
        rows.append(tuple(float(f"{sum(column) / len(some):.4g}") for column in zip(*some, strict=True)))
    return Fingerprint(names=tuple(names), edges=strip.edges, shares=tuple(rows), scale=strip.scale)


def _repair(
    inspection: Inspection, spec: ArchitectureSpec | None, verification: Verification | None
) -> RepairFacts | None:
    report = inspection.keys
    if report is None:
        return None
    plan, left = report.plan, left_over(report)
    names = (*left.missing, *left.initial, *left.unexpected, *(name for name, _, _ in left.reshaped))
    code, why = _code(report, inspection.checkpoint.origin.name, spec)
    return RepairFacts(
        target=report.target,
        says=report.says,
        refusal=report.refusal or why,
        loads=report.loads,
        complete=plan is not None and plan.complete,
        matched=len(report.matched),
        missing=len(report.missing),
        unexpected=len(report.unexpected),
        reshaped=len(report.reshaped),
        left_over=names[:_LEFT_OVER],
        rules=plan.rules if plan is not None else (),
        placed=tuple(EvidenceCount(evidence=kind.value, tensors=n) for kind, n in plan.certificate) if plan else (),
        findings=report.findings,
        proofs=verification.proofs if verification is not None else (),
        not_verified="" if verification is not None else _not_verified(inspection.checkpoint, report),
        code=code,
    )


def _code(report: KeyReport, name: str, spec: ArchitectureSpec | None) -> tuple[str, str]:
    """(the lines, why there are none)."""
    if report.plan is None or not report.plan.complete:
        return "", ""
    try:
        return python_code(report.plan, file_name=name, spec=spec), ""
    except ExportError as error:
        return "", str(error)


def _not_verified(checkpoint: Checkpoint, report: KeyReport) -> str:
    plan = report.plan
    if plan is None or not plan.complete:
        return "There is no complete repair to verify."
    if not_whole(checkpoint, plan):
        return "No repair was tried: the file ends before its tensors do."
    if not plan.rules:
        return "Nothing was changed, so there is no repair to verify."
    if is_proved(checkpoint, plan):
        return "A repair is proved when its file is written; here the headers alone were compared."
    return (
        f"Not verified here: the tensors are more than {human_bytes(PROVED_NBYTES)}. `inspector repair` proves the "
        "file that it writes, whatever its size."
    )


def _not_examined(inspection: Inspection) -> tuple[tuple[str, str], ...]:
    checkpoint, health = inspection.checkpoint, inspection.health
    left = [("reading", what) for what in checkpoint.skipped]
    best = inspection.recognition.best if inspection.recognition is not None else None
    # Of what is not known for sure nobody expects costs.
    known = best is not None and best.exact
    left += [(what, why) for what, why in inspection.skipped if known or what != Question.COSTS]
    if health is not None:
        left += health.not_examined
    elif inspection.counted is not None and inspection.counted.tensors:
        left += _beyond_counts(inspection.counted)
    elif checkpoint.weights is not None and not any(what == Question.HEALTH for what, _ in left):
        left.append(("numbers", f"Not read: {counted(len(checkpoint.weights.tensors), 'tensor')}."))
    return tuple(left)


def _beyond_counts(found: CountedNumbers) -> list[tuple[str, str]]:
    rest = f" Not counted: {counted(found.left, 'tensor')}." if found.left else ""
    says = f"Counted in {counted(found.tensors, 'tensor')}: NaN, infinite, zero, least and largest. Nothing else."
    return [("numbers", says + rest)]
