"""Every picture through the model once, by a sweep over pieces: the same scores whatever runs them, kept on the way."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from inspector.cam.describe import versions
from inspector.cam.engine.capture import capture
from inspector.cam.inputs.picture import input_shape
from inspector.cam.report import Preprocessing
from inspector.cam.runs import ReadyModel
from inspector.cam.sweeping.held import ModelPlace, Pictures
from inspector.cam.sweeping.run import Question, Running, run_pictures
from inspector.errors import LimitExceeded
from inspector.evaluate.labels import ClassFolders
from inspector.evaluate.pieces import QUESTION, Scored, packed, unpacked
from inspector.evaluate.work import Scoring, forward
from inspector.progress import Progress, silent
from inspector.units import human_bytes

MOST_NBYTES = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureScores:
    """values: (N, K) float32 in the order of the listing; unread: (position, why) of pictures without, whose rows are
    NaN."""

    values: NDArray[np.float32]
    unread: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPiece:
    """number: of the piece. key: of its scores in a store, "" where they are in none."""

    number: int
    key: str
    scored: Scored


def answer_to_noise(model: nn.Module, preprocessing: Preprocessing) -> Tensor:
    """(1, K) scores of one fixed picture of noise. Raises ExplainError where it gives none."""
    noise = torch.rand((1, *input_shape(preprocessing)), generator=torch.Generator().manual_seed(0))
    with capture(model) as borrowed:
        torch.manual_seed(0)
        return forward(borrowed, noise)


def head_size(model: nn.Module, preprocessing: Preprocessing) -> int:
    """How many scores it gives for a picture, by one pass. Raises ExplainError where it gives none."""
    return int(answer_to_noise(model, preprocessing).shape[1])


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
    ready: ReadyModel, folders: ClassFolders, answer: Tensor, running: Running, *, progress: Progress = silent
) -> Iterator[ScoredPiece]:
    """Each piece of the part once, in the order in which they are there; with a store it has them then.

    answer: `answer_to_noise`. Raises ExplainError where the model does not run on a picture, and as `run_pictures`.
    """
    paths, outputs = folders.listing.paths, int(answer.shape[1])
    scores_nbytes(len(paths), outputs)
    asked = Question(
        name=QUESTION,
        # Code of one's own may change under its name, which the answer to noise shows.
        facts=(
            ready.architecture,
            answer.float().cpu().numpy().tobytes().hex(),
            dataclasses.asdict(ready.preprocessing),
            outputs,
            versions(),
        ),
        work=partial(_scoring, ready.preprocessing, outputs),
        nothing=partial(_nothing, outputs),
    )
    opened = folders.files.place, folders.files
    for result in run_pictures(ready, paths, opened, asked, running, progress=progress):
        rows, key = len(result.pictures.paths), result.key
        found = unpacked(result.data, rows, outputs)
        if found is None:
            # Of a store that somebody else wrote into.
            found, key = unpacked(result.again(), rows, outputs), ""
            assert found is not None
        yield ScoredPiece(number=result.number, key=key, scored=found)


def assembled(pieces: Iterable[ScoredPiece], pictures: int, outputs: int, each: int) -> PictureScores:
    """Pieces in any order as one table; what is in none of them is NaN. each: pictures of a piece."""
    values = np.full((pictures, outputs), np.nan, dtype=np.float32)
    unread: list[tuple[int, str]] = []
    for piece in pieces:
        start, found = piece.number * each, piece.scored
        values[start : start + len(found.values)] = found.values
        unread += [(start + row, why) for row, why in found.unread]
    return PictureScores(values=values, unread=tuple(sorted(unread)))


def _scoring(preprocessing: Preprocessing, outputs: int, model: ModelPlace) -> Scoring:
    return Scoring(model=model, preprocessing=preprocessing, outputs=outputs)


def _nothing(outputs: int, item: Pictures, unread: tuple[tuple[int, str], ...]) -> bytes:
    values = np.full((len(item.paths), outputs), np.nan, dtype=np.float32)
    return packed(Scored(values=values, unread=unread))
