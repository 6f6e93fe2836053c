"""Where in its training a checkpoint was saved, as the file itself says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.cam.inputs.stated import stated_beside
from inspector.checkpoint.types import Checkpoint

# As Lightning, transformers, DeepSpeed, mmengine and hand-written loops call them. "epochs" is what was planned.
_EPOCHS = ("epoch", "current_epoch")
_STEPS = ("global_step", "global_steps", "step", "iteration", "iter")
_TRAINER = "trainer_state.json"
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
