"""Gradients that came once and come no more: Adam's two averages forget at different speeds.

m decays by beta1 a step and v by beta2 (Kingma and Ba 2014, 1412.6980), so that after n steps of zero gradients
|m| / sqrt(v) is (beta1 / sqrt(beta2))^n of what it was: 5e-10 after 200 with the usual ones. Noise alone keeps it near
sqrt((1 - beta1) / (1 + beta1)) = 0.2, and one gradient a thousand times the others, not yet forgotten, above 1e-4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed
from inspector.health.subject import Subject
from inspector.health.training.numbers import plain_numbers
from inspector.health.training.optimizers import Entry, Optimizer
from inspector.units import counted

FADED = FindingKind(
    "gradients-faded", Severity.WARNING, "Gradients of some parameters have ended", also=(Severity.NOTICE,)
)

# |m| / sqrt(v) of parameters whose gradients have ended, and what some other one has at least.
_FADED, _ALIVE = 1e-6, 1e-4
_USUAL_BETAS = (0.9, 0.999)
_NOISE = 0.23


def _find(subject: Subject) -> Iterator[Finding]:
    for optimizer in subject.training.optimizers:
        ratios = {key: ratio for key, entry in optimizer.entries.items() if (ratio := _ratio(subject, entry))}
        faded = [key for key, ratio in ratios.items() if ratio < _FADED]
        if faded and max(ratios.values()) >= _ALIVE:
            yield _finding(optimizer, faded, ratios)


def _ratio(subject: Subject, entry: Entry) -> float:
    """|m| / sqrt(v) over a parameter; 0 where one of them is zero or not there."""
    tensors = [entry.tensors.get(name) for name in ("exp_avg", "exp_avg_sq")]
    first, second = (subject.measured_by_path.get(tensor.path) if tensor is not None else None for tensor in tensors)
    if first is None or second is None or not first.finite or not second.finite or second.mean <= 0:
        return 0.0
    return first.rms / math.sqrt(second.mean)


def _finding(optimizer: Optimizer, faded: list[str], ratios: dict[str, float]) -> Finding:
    labels = [optimizer.entries[key].label for key in faded]
    worst = min(ratios[key] for key in faded)
    first, second = _betas(optimizer)
    steps = math.log(worst / _NOISE) / math.log(first / math.sqrt(second)) if first < math.sqrt(second) else 0.0
    done = f", as after some {steps:,.0f} steps without any" if steps > 0 else ""
    return FADED.found(
        f"{optimizer.called} remembers gradients of {counted(len(faded), 'parameter')} of {len(ratios):,} that have "
        f"ended: averages of {worst:.2g} times the root of their squares{done}, and up to {max(ratios.values()):.2g} "
        f"times elsewhere: {listed(labels)}.",
        severity=Severity.WARNING if len(faded) > 1 else Severity.NOTICE,
        subjects=labels,
        evidence=(
            *(("parameters", len(faded)), ("of", len(ratios)), ("ratio", worst), ("steps without", round(steps))),
            ("threshold", _FADED),
        ),
        remedy="Nothing trains these parameters any more, though they are stepped: units that died (ReLUs after too "
        "long a step), a branch that is no longer used, or a saturated one. Go back to a checkpoint from before, with "
        "a lower learning rate or gradients clipped.",
    )


def _betas(optimizer: Optimizer) -> tuple[float, float]:
    for group in optimizer.groups:
        numbers = plain_numbers(group.settings.get("betas"))
        if len(numbers) == 2 and all(0 < number < 1 for number in numbers):
            return numbers[0], numbers[1]
    return _USUAL_BETAS


CHECK = Check(kinds=(FADED,), find=_find)
