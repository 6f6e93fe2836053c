"""Settings of an optimizer's groups with which no training works: torch checks them when an optimizer is made, and not
when they are loaded from a file.

Decoupled weight decay, and SGD's, multiply a weight by 1 - lr * decay a step (Loshchilov and Hutter 2017, 1711.05101):
0.0001 to 0.001 in published trainings, so that half of a weight is gone after thousands of steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.subject import Subject
from inspector.health.training.numbers import plain_number, plain_numbers
from inspector.health.training.optimizers import Group, Optimizer
from inspector.units import counted

SETTING_INVALID = FindingKind("optimizer-setting-invalid", Severity.ERROR, "A setting of an optimizer cannot be")
HEAVY_DECAY = FindingKind("weight-decay-heavy", Severity.WARNING, "Weight decay shrinks weights to nothing")

# What becomes of a weight in a step, of which half is gone after 35 steps; and a decay that no optimizer is given.
_SHRINKS, _HEAVY = 0.02, 10.0


def _find(subject: Subject) -> Iterator[Finding]:
    for optimizer in subject.training.optimizers:
        yield from _invalid(optimizer)
        yield from _heavy(optimizer)


def _invalid(optimizer: Optimizer) -> Iterator[Finding]:
    found = [(group, name, number) for group in optimizer.groups for name, number in _impossible(group)]
    if found:
        group, name, number = found[0]
        more = f", and {len(found) - 1:,} more settings like it" if len(found) > 1 else ""
        yield SETTING_INVALID.found(
            f"{optimizer.called} has {name} {number:g} in the group of {counted(len(group.keys), 'parameter')}{more}.",
            subjects=[" / ".join(each.path) for each, _, _ in found],
            evidence=(("settings", len(found)), (name, number)),
            remedy="torch checks settings when an optimizer is made and not when its state is loaded: set it in every "
            "group after load_state_dict.",
        )


def _impossible(group: Group) -> Iterator[tuple[str, float]]:
    for name in ("weight_decay", "momentum", "eps", "dampening"):
        number = plain_number(group.settings.get(name))
        if number is not None and (not math.isfinite(number) or number < 0 or (name == "momentum" and number > 1)):
            yield name, number
    for number in plain_numbers(group.settings.get("betas")):
        if not 0 <= number <= 1:
            yield "beta", number


def _heavy(optimizer: Optimizer) -> Iterator[Finding]:
    groups = [(group, decay, rate) for group in optimizer.groups for decay, rate in _decays(group)]
    found = [(group, decay, rate) for group, decay, rate in groups if decay * rate >= _SHRINKS or decay >= _HEAVY]
    if not found:
        return
    _, decay, rate = max(found, key=lambda each: each[1])
    listed = sum(len(each.keys) for each, _, _ in found)
    others = sorted({other for _, other, _ in groups if other < decay})
    beside = f", and {others[0]:g} in others" if others else ""
    names = [optimizer.names[key] for each, _, _ in found for key in each.keys if key in optimizer.names]
    which = f": {names[0]} to {names[-1]}" if len(names) > 1 else ""
    yield HEAVY_DECAY.found(
        f"{optimizer.called} decays {counted(listed, 'parameter')} by a weight_decay of {decay:g}{beside}: at a "
        f"learning rate of {rate:g} a step may take {decay * rate:.2g} of a weight{which}.",
        subjects=names or [" / ".join(each.path) for each, _, _ in found],
        evidence=(
            *(("weight_decay", decay), ("lr", rate), ("parameters", listed)),
            *(("threshold", _SHRINKS), ("threshold_decay", _HEAVY)),
        ),
        remedy="Usual ones are 0.0001 to 0.1. Weights under it shrink to nothing, and what depends on their size "
        "(norms behind them, units that die) follows: set it in the group, and go back to a checkpoint from before.",
    )


def _decays(group: Group) -> Iterator[tuple[float, float]]:
    """(weight_decay, the learning rate that the training began with)."""
    decay = plain_number(group.settings.get("weight_decay"))
    rate = group.initial_lr if group.initial_lr is not None else group.lr
    if decay is not None and rate is not None and math.isfinite(decay) and math.isfinite(rate) and min(decay, rate) > 0:
        yield decay, rate


CHECK = Check(kinds=(SETTING_INVALID, HEAVY_DECAY), find=_find)
