"""Zeros and constants that a pass gave: why, what follows from them, and whether the answer still follows the input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor, nn

from inspector.doctor.observations import AllNegative
from inspector.doctor.record import Recorder
from inspector.doctor.signs import ALL_ZEROS, CONSTANT, LEAST_VALUES
from inspector.findings import Finding, Severity

_PAST = "The answer follows the input all the same: another way goes past it."


def explained(
    model: nn.Module, recorder: Recorder, bad: Sequence[Finding], follows: Callable[[], bool | None]
) -> list[Finding]:
    """bad: in the order in which they came. follows: whether the answer follows the input, asked only where it matters.

    What is constant in one branch alone is no warning; what is constant behind zeros is told with them.
    """
    found = list(bad)
    silent = [one for one in recorder.all_negative if one.count >= LEAST_VALUES]
    if silent and not any(f.id == ALL_ZEROS.id for f in found):
        found.append(_of_function(silent[0]))
    graver = [f for f in found if f.id in (ALL_ZEROS.id, CONSTANT.id) and f.severity is Severity.WARNING]
    if not graver:
        return found
    follow = follows()
    if follow:
        return [_milder(f) if f in graver else f for f in found]
    first = graver[0]
    behind = [f for f in graver[1:] if "first to give" in f.says]
    why, remedy = _reason(model, recorder, silent, first)
    says = first.says.rstrip(".") + why + "."
    for one in behind:
        says += f" Behind it {one.says.replace('is the first to give', 'gives').rstrip('.')}."
    says += "" if follow is None else " The answer does not follow the input."
    told = replace(first, says=says, remedy=remedy or first.remedy)
    return [told if f is first else f for f in found if f is first or f not in graver]


def _of_function(one: AllNegative) -> Finding:
    line = f" ({one.line.file}, line {one.line.line}: {one.line.text})" if one.line is not None else ""
    return ALL_ZEROS.found(
        f"relu in {one.inside or 'the model itself'}{line} gives nothing but zeros ({one.count:,} values).",
        subjects=(one.inside,),
        evidence=(("values", one.count),),
        remedy="Nothing of the input goes beyond it.",
    )


def _milder(finding: Finding) -> Finding:
    severity = Severity.NOTICE if finding.id == ALL_ZEROS.id else Severity.INFO
    return replace(finding, severity=severity, remedy=_PAST)


def _reason(model: nn.Module, recorder: Recorder, silent: Sequence[AllNegative], finding: Finding) -> tuple[str, str]:
    """(clause, remedy) of a ReLU that lets nothing through: what it got, and whether a bias alone makes it so."""
    one = next((one for one in silent if one.inside == finding.subjects[0]), None)
    if one is None or finding.id != ALL_ZEROS.id or not one.maker:
        return "", ""
    call = next((call for call in reversed(recorder.calls) if call.path == one.maker and call.outputs), None)
    values = call.outputs[0].statistics if call is not None else None
    if call is None or values is None or values.minimum is None or values.maximum is None or values.maximum > 0:
        return "", ""
    got = f": all it gets from {one.maker} ({call.kind}) is negative ({values.minimum:.3g} to {values.maximum:.3g})"
    bias = getattr(dict(model.named_modules()).get(one.maker), "bias", None)
    if not isinstance(bias, Tensor) or bias.is_meta or not bias.numel():
        return got, ""
    mean = float(bias.detach().double().mean())
    low, high = values.minimum - mean, values.maximum - mean
    if high <= 0:
        return got, ""
    return (
        f"{got}, since its bias is {mean:.3g} on average and its weights alone give {low:.3g} to {high:.3g}",
        f"Start {one.maker}.bias near 0 (nn.init.zeros_); after training, look for too high a learning rate.",
    )
