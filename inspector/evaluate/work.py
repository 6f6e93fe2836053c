"""What a worker does with a piece: pictures through the model once, a function of the piece alone, which runs anywhere.

A model is opened once in each process, and what asked for it lends its own where the work runs beside it.
"""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import Capture, capture, unwrap
from inspector.cam.inputs.picture import open_picture
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import Preprocessing
from inspector.cam.runnable import first_line, mixes_pictures
from inspector.cam.runs import ReadyModel
from inspector.errors import ExplainError, InspectorError, ReadError
from inspector.evaluate.files import PictureFiles, PicturesPlace, digest_of
from inspector.evaluate.pieces import Pictures, Scored, packed, packed_error
from inspector.progress import Progress, silent
from inspector.sweep.piece import Outcome

# Pictures that go through the model at once; it divides a piece. Of larger inputs fewer, so that what a batch takes
# does not grow with them.
BATCH = 16
_USUAL_PIXELS = 256 * 256
CHANGED = "It changed while it was read: ask again."

Reopen = Callable[[], ReadyModel]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """What the work of one run needs in a process. progress: inside of a piece, as `inspector.progress` has it."""

    model: nn.Module
    files: PictureFiles
    progress: Progress = silent


# By the run: what was lent here, and the one that was opened here last.
_LENT: dict[str, Held] = {}
_OPENED: dict[str, Held] = {}
_LOCK = threading.Lock()


@contextmanager
def lent(run: str, held: Held) -> Iterator[None]:
    """For the time of a run, work in this process takes what is there already."""
    _LENT[run] = held
    try:
        yield
    finally:
        _LENT.pop(run, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """The work. run: its name, another for each. reopen: opens the model elsewhere, None where nothing runs elsewhere.
    content: what `content_of` says of the model. place: of the pictures. outputs: of the head. threads: that torch
    computes with: with others the last digits may differ."""

    run: str
    reopen: Reopen | None
    content: str
    place: PicturesPlace
    preprocessing: Preprocessing
    outputs: int
    threads: int

    def __call__(self, item: Pictures) -> Outcome:
        try:
            held = self._held()
            if torch.get_num_threads() != self.threads:
                torch.set_num_threads(self.threads)
            found, kept = self._scored(item, held)
        except InspectorError as error:
            return Outcome(data=packed_error(error), kept=False)
        return Outcome(data=packed(found), kept=kept and not item.left_out)

    def _held(self) -> Held:
        if self.run in _LENT:
            return _LENT[self.run]
        with _LOCK:
            if self.run not in _OPENED:
                _OPENED.clear()
                _OPENED[self.run] = self._opened()
            return _OPENED[self.run]

    def _opened(self) -> Held:
        if self.reopen is None:
            raise ReadError("This model was built in another process, and is not there in this one.")
        try:
            ready = self.reopen()
            files = self.place.open()
        except InspectorError as error:
            says = f"A worker on {socket.gethostname()} cannot begin: {error.says}"
            raise ReadError(says, hint="Workers need the same paths as whoever sends them there.") from error
        if content_of(ready) != self.content:
            raise ReadError(f"{ready.name} is not what it was when the evaluation began: a worker read another one.")
        return Held(model=ready.model, files=files)

    def _scored(self, item: Pictures, held: Held) -> tuple[Scored, bool]:
        """Scores, and whether they will be the same another time."""
        values = np.full((len(item.paths), self.outputs), np.nan, dtype=np.float32)
        pictures = _Prepared(item, held, self.preprocessing)
        for rows, batch in _batches(unwrap(held.model), pictures):
            with capture(held.model) as borrowed:
                # A model that draws random numbers draws the same ones wherever it runs.
                torch.manual_seed(0)
                found = forward(borrowed, batch)
            if found.shape != (len(rows), self.outputs):
                raise ExplainError(
                    f"The model gives {tuple(found.shape)} scores for {len(rows)} pictures; {self.outputs:,} for each "
                    "were expected."
                )
            values[rows] = found.float().cpu().numpy()
        return Scored(values=values, unread=tuple(sorted(pictures.unread))), pictures.lasting


class _Prepared:
    """(row, (1, C, H, W)) of each that can be read. unread: the others, and why. lasting: all that was said of them
    says something of their bytes, which are those that were asked for."""

    def __init__(self, item: Pictures, held: Held, preprocessing: Preprocessing) -> None:
        self.unread = list(item.left_out)
        self.lasting = True
        self._item, self._held, self._preprocessing = item, held, preprocessing

    def __iter__(self) -> Iterator[tuple[int, Tensor]]:
        gone = {row for row, _ in self.unread}
        for row, path in enumerate(self._item.paths):
            self._held.progress(row, None, path)
            if row in gone:
                continue
            try:
                data = self._held.files.read(path)
            except InspectorError as error:
                self.lasting = False
                self.unread.append((row, error.says))
                continue
            if self._item.digests and digest_of(data) != self._item.digests[row]:
                self.lasting = False
                self.unread.append((row, CHANGED))
                continue
            try:
                batch, _ = prepare(open_picture(data), self._preprocessing)
            except InspectorError as error:
                self.unread.append((row, error.says))
                continue
            yield row, batch


def content_of(ready: ReadyModel) -> str:
    """What its weights are known by: the file's bytes, or where nobody took their digest the tensors that run."""
    if ready.sha256:
        return f"{ready.sha256} {ready.weights}"
    digest = hashlib.sha256()
    for name, tensor in unwrap(ready.model).state_dict().items():
        digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return f"tensors {digest.hexdigest()}"


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


def _batches(model: nn.Module, prepared: _Prepared) -> Iterator[tuple[list[int], Tensor]]:
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
