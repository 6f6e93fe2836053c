"""Every picture through the model once: scores, piece by piece, kept on the way.

Pieces and batches are by position alone, so that a second start, another machine or a picture that cannot be read
leave the others' neighbours as they are (pytorch/pytorch#25162 is what becomes of metrics otherwise).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from inspector.cam.engine.capture import Capture, capture
from inspector.cam.inputs.picture import input_shape, open_picture
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import Preprocessing
from inspector.cam.runnable import first_line, mixes_pictures
from inspector.errors import ExplainError, InspectorError, LimitExceeded
from inspector.evaluate.keeping import Keeper, Piece, packed, unpacked
from inspector.evaluate.labels import ClassFolders
from inspector.progress import Progress, silent
from inspector.units import human_bytes

# Pictures of a piece: what is lost where the work is stopped.
PIECE = 64
# Pictures that go through the model at once; it divides a piece. Of larger inputs fewer, so that what a batch takes
# does not grow with them.
BATCH = 16
_USUAL_PIXELS = 256 * 256
MOST_NBYTES = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureScores:
    """values: (N, K) float32 in the order of the listing; unread: (position, why) of pictures without, whose rows are
    NaN."""

    values: NDArray[np.float32]
    unread: tuple[tuple[int, str], ...]


def head_size(model: nn.Module, preprocessing: Preprocessing) -> int:
    """How many scores it gives for a picture, by one pass of a blank one. Raises ExplainError where it gives none."""
    blank = torch.zeros((1, *input_shape(preprocessing)))
    with capture(model) as lent:
        return int(_forward(lent, blank).shape[1])


def scores_nbytes(pictures: int, outputs: int) -> int:
    """Of all scores. Raises LimitExceeded for more than are held."""
    nbytes = 4 * pictures * outputs
    if nbytes > MOST_NBYTES:
        raise LimitExceeded(
            f"Scores of {pictures:,} pictures for {outputs:,} classes take {human_bytes(nbytes)}; "
            f"{human_bytes(MOST_NBYTES)} are held.",
            hint="Evaluate a part of the pictures at a time.",
        )
    return nbytes


def score_pictures(
    model: nn.Module,
    folders: ClassFolders,
    preprocessing: Preprocessing,
    keeper: Keeper,
    *,
    outputs: int,
    key: str = "",
    progress: Progress = silent,
) -> PictureScores:
    """outputs: of the head. key: of this model, these pictures and this preprocessing, for what is kept.

    A picture that cannot be read is said and the others go on. Raises ExplainError where the model does not run on
    one. The model is left as it was.
    """
    paths = folders.listing.paths
    scores_nbytes(len(paths), outputs)
    values = np.full((len(paths), outputs), np.nan, dtype=np.float32)
    unread: list[tuple[int, str]] = []
    with capture(model) as lent:
        for number, start in enumerate(range(0, len(paths), PIECE)):
            some = paths[start : start + PIECE]
            kept = keeper.read(number)
            piece = None if kept is None else unpacked(kept, key, len(some), outputs)
            if piece is None:
                piece = _piece(lent, folders, some, preprocessing, outputs, _counted(progress, start, len(paths)))
                keeper.write(number, packed(piece, key))
            values[start : start + len(some)] = piece.values
            unread += [(start + row, why) for row, why in piece.unread]
        progress(len(paths), len(paths), "")
    return PictureScores(values=values, unread=tuple(unread))


def _counted(progress: Progress, start: int, total: int) -> Progress:
    return lambda done, _, note: progress(start + done, total, note)


def _piece(
    lent: Capture,
    folders: ClassFolders,
    paths: tuple[str, ...],
    preprocessing: Preprocessing,
    outputs: int,
    progress: Progress,
) -> Piece:
    values = np.full((len(paths), outputs), np.nan, dtype=np.float32)
    unread: list[tuple[int, str]] = []
    for rows, batch in _batches(lent.model, _prepared(folders, paths, preprocessing, unread, progress)):
        found = _forward(lent, batch)
        if found.shape != (len(rows), outputs):
            raise ExplainError(
                f"The model gives {tuple(found.shape)} scores for {len(rows)} pictures; {outputs:,} for each were "
                "expected."
            )
        values[rows] = found.float().cpu().numpy()
    return Piece(values=values, unread=tuple(unread))


def _prepared(
    folders: ClassFolders,
    paths: tuple[str, ...],
    preprocessing: Preprocessing,
    unread: list[tuple[int, str]],
    progress: Progress,
) -> Iterator[tuple[int, Tensor]]:
    """(row, (1, C, H, W)) of each that can be read; the others into unread."""
    for row, path in enumerate(paths):
        progress(row, None, path)
        try:
            batch, _ = prepare(open_picture(folders.read(path)), preprocessing)
        except InspectorError as error:
            unread.append((row, error.says))
            continue
        yield row, batch


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


def _forward(lent: Capture, batch: Tensor) -> Tensor:
    """(N, K), out of the graph. Raises ExplainError where the model does not run on it."""
    try:
        with torch.no_grad():
            return lent.forward(batch).detach()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        shape = "x".join(map(str, batch.shape))
        raise ExplainError(f"The model does not run on pictures of {shape}: {first_line(error)}") from error
