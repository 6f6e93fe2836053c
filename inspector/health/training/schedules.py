"""A learning-rate schedule as the file keeps it: which of torch's it is, by its keys.

Source: torch/optim/lr_scheduler.py and swa_utils.py, 2.15.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from inspector.checkpoint.values import Value, ValueKind
from inspector.health.training.numbers import MOST, Measured, Path, find_mappings

# The first whose keys are all there.
KINDS: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (name, frozenset(keys.split()))
    for name, keys in (
        ("OneCycleLR", "total_steps cycle_momentum"),
        ("CyclicLR", "max_lrs step_ratio"),
        ("CosineAnnealingWarmRestarts", "T_0 T_mult"),
        ("CosineAnnealingLR", "T_max eta_min"),
        ("ReduceLROnPlateau", "num_bad_epochs patience"),
        ("MultiStepLR", "milestones gamma"),
        ("StepLR", "step_size gamma"),
        ("LinearLR", "start_factor end_factor"),
        ("ConstantLR", "factor total_iters"),
        ("PolynomialLR", "power total_iters"),
        ("SWALR", "anneal_epochs"),
        ("SequentialLR", "_schedulers _milestones"),
        ("ChainedScheduler", "_schedulers"),
        ("LambdaLR or MultiplicativeLR", "lr_lambdas"),
        ("ExponentialLR", "gamma base_lrs"),
    )
)
# Where each says how long it is.
_LENGTHS = {"OneCycleLR": "total_steps", "CosineAnnealingLR": "T_max"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One schedule. kind: its name, "" for none of torch's. steps: how often it was stepped (`last_epoch`).

    rates: what it set last, per group; None where the file does not tell. base: what it began from. length: after how
    many steps it is over, None where it has no end or does not say.
    """

    path: Path
    kind: str
    steps: float | None
    rates: tuple[float, ...] | None
    base: tuple[float, ...] | None
    length: float | None

    @property
    def label(self) -> str:
        """Where it is."""
        return " / ".join(self.path) or "the file itself"

    @property
    def called(self) -> str:
        """ "StepLR in scheduler"."""
        return f"{self.kind or 'The schedule'} in {self.label}"


def find_kind(keys: frozenset[str]) -> str:
    """The schedule whose state has these keys, "" for none of torch's."""
    return next((name for name, needed in KINDS if needed <= keys), "")


def read_schedules(measured: Measured) -> tuple[Schedule, ...]:
    """Every schedule of the file; those that another one is made of are not listed."""
    return tuple(
        _read(measured, path, parts)
        for path, parts in islice(find_mappings(measured.checkpoint.root, _is_schedule), MOST)
    )


def _is_schedule(parts: Mapping[str, Value]) -> bool:
    last = parts.get("_last_lr")
    if last is not None and last.kind in (ValueKind.SEQUENCE, ValueKind.SEEN):
        return True
    return "last_epoch" in parts and bool({"base_lrs", "num_bad_epochs"} & set(parts))


def _read(measured: Measured, path: Path, parts: Mapping[str, Value]) -> Schedule:
    kind = find_kind(frozenset(parts))
    steps = measured.number(parts.get("last_epoch"), (*path, "last_epoch"))
    if steps is None:  # A chain counts in its members.
        inside = parts.get("_schedulers")
        members = [dict(child.children) for _, child in inside.children] if inside is not None else []
        counts = [measured.number(one.get("last_epoch"), ()) for one in members]
        steps = max((count for count in counts if count is not None and math.isfinite(count)), default=None)
    length = _LENGTHS.get(kind, "")
    return Schedule(
        path=path,
        kind=kind,
        steps=steps if steps is not None and math.isfinite(steps) else None,
        rates=measured.numbers(parts.get("_last_lr"), (*path, "_last_lr")),
        base=measured.numbers(parts.get("base_lrs"), (*path, "base_lrs")),
        length=measured.number(parts.get(length), (*path, length)) if length else None,
    )
