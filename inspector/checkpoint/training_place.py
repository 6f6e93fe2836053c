"""Where in its training a checkpoint was saved, as the file itself says, and in which order those of a run stand."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.checkpoint.stated import stated_beside
from inspector.checkpoint.types import Checkpoint

# As Lightning, transformers, DeepSpeed, mmengine and hand-written loops call them. "epochs" is what was planned.
_EPOCHS = ("epoch", "current_epoch")
_STEPS = ("global_step", "global_steps", "step", "iteration", "iter")
_TRAINER = "trainer_state.json"
_DIGITS = re.compile(r"([0-9]+)")
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,12})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in its training a checkpoint was saved, as the file itself says; None where it does not."""

    epoch: float | None = None
    step: float | None = None

    @property
    def says(self) -> str:
        """ "epoch 3, step 1200", "" when nothing is stated."""
        pairs = (("epoch", self.epoch), ("step", self.step))
        return ", ".join(f"{name} {value:.12g}" for name, value in pairs if value is not None)


def place_of(checkpoint: Checkpoint) -> Place:
    """From the file's own values, else from the trainer_state.json beside it."""
    own = dict(checkpoint.own_metadata)

    def found(names: Sequence[str]) -> float | None:
        texts = [own.get(name, "") for name in names]
        texts += [str(stated_beside(checkpoint, _TRAINER, name)) for name in names]
        return next((float(text) for text in texts if _NUMBER.fullmatch(text)), None)

    return Place(epoch=found(_EPOCHS), step=found(_STEPS))


def in_order(stated: Sequence[tuple[str, Place]]) -> tuple[tuple[int, ...], str]:
    """(positions in the order of training, what says so: "epoch and step", "epoch", "step" or "name").

    stated: (name, place) of each. A step may count within its epoch, so epochs come first. What only some of them state
    orders none: then the names do, numbers in them by their value.
    """
    places = [place for _, place in stated]
    epochs = all(place.epoch is not None for place in places)
    steps = all(place.step is not None for place in places)

    def key(position: int) -> tuple[object, ...]:
        name, place = stated[position]
        return (place.epoch if epochs else 0, place.step if steps else 0, natural(name), position)

    by = " and ".join(word for word, holds in (("epoch", epochs), ("step", steps)) if holds)
    return tuple(sorted(range(len(stated)), key=key)), by or "name"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts "step9" before "step10"."""
    pieces = _DIGITS.split(name.casefold())
    # By length, then as text: a number of ten thousand digits is none that Python would read.
    return tuple(
        (1, len(piece.lstrip("0")), piece.lstrip("0")) if at % 2 else (0, 0, piece) for at, piece in enumerate(pieces)
    )


def axis_of(places: Sequence[Place]) -> tuple[tuple[float, ...], str]:
    """(where each stands along a curve, what that is): the step or the epoch where it grows, else 1, 2, 3."""
    for name in ("step", "epoch"):
        values = [getattr(place, name) for place in places]
        if None not in values and all(a < b for a, b in itertools.pairwise(values)):
            return tuple(values), name
    return tuple(float(n) for n in range(1, len(places) + 1)), "checkpoint"
