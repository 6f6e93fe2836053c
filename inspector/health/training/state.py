"""All that a file holds of a training, read once for every check that asks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from inspector.checkpoint.types import StateDict
from inspector.checkpoint.values import Value, ValueKind
from inspector.health.training.numbers import MOST, Measured, Path, find_mappings
from inspector.health.training.optimizers import Optimizer, read_optimizers
from inspector.health.training.schedules import Schedule, read_schedules

# What scripts, Lightning, mmengine and nanoGPT call their counters, at the root or under one of these.
_EPOCHS = ("epoch", "current_epoch", "cur_epoch", "start_epoch")
_STEPS = ("global_step", "step", "iteration", "iter", "iter_num", "global_iter", "n_iter")
_PLACES = ("meta",)
_SCALER = frozenset({"scale", "growth_factor", "backoff_factor", "growth_interval"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """A gradient scaler (torch.amp.GradScaler). path: where. scale: what losses are multiplied by."""

    path: Path
    scale: float | None

    @property
    def label(self) -> str:
        """Where it is."""
        return " / ".join(self.path) or "the file itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A number of epochs or steps that the file keeps. label: its key and where ("meta / epoch")."""

    label: str
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What is there of a training; empty tuples where the file has none of a kind."""

    optimizers: tuple[Optimizer, ...]
    schedules: tuple[Schedule, ...]
    scalers: tuple[Scaler, ...]
    epochs: tuple[Counter, ...]
    steps: tuple[Counter, ...]

    @property
    def most_steps(self) -> float | None:
        """The most that any optimizer or counter of steps tells; None where none counts."""
        counts = [one.most_steps for one in self.optimizers] + [one.count for one in self.steps]
        return max((count for count in counts if count is not None), default=None)


def read_training(measured: Measured, state: StateDict | None) -> Training:
    """Optimizers, schedules, scalers and counters. state: the weights that an optimizer's entries may belong to."""
    return Training(
        optimizers=read_optimizers(measured, state),
        schedules=read_schedules(measured),
        scalers=tuple(
            Scaler(path=path, scale=measured.number(parts.get("scale"), (*path, "scale")))
            for path, parts in islice(
                find_mappings(measured.checkpoint.root, lambda parts: set(parts) >= _SCALER), MOST
            )
        ),
        epochs=_counters(measured, _EPOCHS),
        steps=_counters(measured, _STEPS),
    )


def _counters(measured: Measured, names: tuple[str, ...]) -> tuple[Counter, ...]:
    found = []
    root = dict(measured.checkpoint.root.children)
    places: list[tuple[Path, Mapping[str, Value]]] = [((), root)]
    places += [((place,), dict(root[place].children)) for place in _PLACES if place in root]
    for path, inside in places:
        for name in names:
            value = inside.get(name)
            count = measured.number(value, (*path, name))
            if value is not None and value.kind is not ValueKind.BOOLEAN and count is not None and math.isfinite(count):
                found.append(Counter(label=" / ".join((*path, name)), count=count))
    return tuple(found)
