"""What a worker does with a piece of an evaluation: pictures through the model once, a function of the piece alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from inspector.cam.engine.capture import Capture, capture, unwrap
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import Preprocessing
from inspector.cam.runnable import first_line, mixes_pictures
from inspector.cam.sweeping.held import Held, ModelPlace, Pictures, ReadPictures, ending
from inspector.errors import ExplainError, InspectorError
from inspector.evaluate.pieces import Scored, packed
from inspector.sweep.piece import Outcome

# Pictures that go through the model at once; it divides a piece. Of larger inputs fewer, so that what a batch takes
# does not grow with them.
BATCH = 16
_USUAL_PIXELS = 256 * 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """The work. outputs: of the head."""

    model: ModelPlace
    preprocessing: Preprocessing
    outputs: int

    def __call__(self, item: Pictures) -> Outcome:
        try:
            held = self.model.held()
            pictures = ReadPictures(item, held)
            values = self._scored(pictures, held, len(item.paths))
        except InspectorError as error:
            return ending(error)
        scored = Scored(values=values, unread=tuple(sorted(pictures.unread)))
        return Outcome(data=packed(scored), kept=pictures.lasting)

    def _scored(self, pictures: ReadPictures, held: Held, rows: int) -> NDArray[np.float32]:
        values = np.full((rows, self.outputs), np.nan, dtype=np.float32)
        for places, batch in _batches(unwrap(held.model), self._prepared(pictures)):
            with capture(held.model) as borrowed:
                # A model that draws random numbers draws the same ones wherever it runs.
                torch.manual_seed(0)
                found = forward(borrowed, batch)
            if found.shape != (len(places), self.outputs):
                raise ExplainError(
                    f"The model gives {tuple(found.shape)} scores for {len(places)} pictures; {self.outputs:,} for "
                    "each were expected."
                )
            values[places] = found.float().cpu().numpy()
        return values

    def _prepared(self, pictures: ReadPictures) -> Iterator[tuple[int, Tensor]]:
        for row, picture in pictures:
            try:
                batch, _ = prepare(picture, self.preprocessing)
            except InspectorError as error:
                pictures.refuse(row, error.says)
                continue
            yield row, batch


def forward(borrowed: Capture, batch: Tensor) -> Tensor:
    """(N, K), out of the graph. Raises ExplainError where the model does not run on it."""
    try:
        with torch.no_grad():
            return borrowed.forward(batch).detach()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        shape = "x".join(map(str, batch.shape))
        raise ExplainError(f"The model does not run on pictures of {shape}: {first_line(error)}") from error


def _batches(model: nn.Module, prepared: Iterator[tuple[int, Tensor]]) -> Iterator[tuple[list[int], Tensor]]:
    """Neighbours by position whose inputs are of one size."""
    mixes = mixes_pictures(model)
    rows: list[int] = []
    waiting: list[Tensor] = []
    for row, one in prepared:
        together = 1 if mixes else _together(one)
        if waiting and (row // together != rows[0] // together or one.shape != waiting[0].shape):
            yield rows, torch.cat(waiting)
            rows, waiting = [], []
        rows.append(row)
        waiting.append(one)
    if waiting:
        yield rows, torch.cat(waiting)


def _together(one: Tensor) -> int:
    """A power of two, so that a piece is whole batches."""
    pixels = one.shape[2] * one.shape[3]
    together = BATCH
    while together > 1 and together * pixels > BATCH * _USUAL_PIXELS:
        together //= 2
    return together
