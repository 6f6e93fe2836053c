"""What a worker has in hand: a model that is opened once in each process, and pictures that are known by their bytes.

What asked for the work lends its own model where the work runs beside it.
"""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam.engine.capture import capture, like_the_model, unwrap
from inspector.cam.inputs.picture import input_shape, open_picture
from inspector.cam.report import Preprocessing
from inspector.cam.runs import ReadyModel
from inspector.cam.targets.readings import tensors_in
from inspector.errors import ExplainError, InspectorError, ReadError
from inspector.progress import Progress, silent
from inspector.sweep.piece import Outcome

CHANGED = "It changed while it was read: ask again."
_ERRORS = {kind.__name__: kind for kind in (ExplainError, ReadError)}
# What ends the whole run begins so, not with what a piece gave.
_ENDING = b"{error} "

Reopen = Callable[[], ReadyModel]


class Files(Protocol):
    """Pictures by their names."""

    def read(self, path: str) -> bytes:
        """Raises InspectorError for what cannot be read."""
        ...


class FilesPlace(Protocol):
    """Where they lie, as it travels to other processes."""

    def open(self) -> Files:
        """Raises InspectorError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """What a worker is given. paths: in their order. digests: of the bytes of each, () where nothing is kept. left_out:
    (row, why) of those that are not to be touched."""

    paths: tuple[str, ...]
    digests: tuple[str, ...] = ()
    left_out: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """What the work of one run needs in a process. progress: inside of a piece, as `inspector.progress` has it."""

    model: nn.Module
    files: Files
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
class ModelPlace:
    """How a worker comes by the model and the pictures. run: its name, another for each. reopen: opens the model
    elsewhere, None where nothing runs elsewhere. content: what `content_of` says of it. files: where the pictures lie.
    threads: that torch computes with: with others the last digits may differ."""

    run: str
    reopen: Reopen | None
    content: str
    files: FilesPlace
    threads: int

    def held(self) -> Held:
        """Raises ReadError where this process cannot have the same model."""
        if self.run in _LENT:
            found = _LENT[self.run]
        else:
            with _LOCK:
                if self.run not in _OPENED:
                    _OPENED.clear()
                    _OPENED[self.run] = self._opened()
                found = _OPENED[self.run]
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)
        return found

    def _opened(self) -> Held:
        if self.reopen is None:
            raise ReadError("This model was built in another process, and is not there in this one.")
        try:
            ready = self.reopen()
            files = self.files.open()
        except InspectorError as error:
            says = f"A worker on {socket.gethostname()} cannot begin: {error.says}"
            raise ReadError(says, hint="Workers need the same paths as whoever sends them there.") from error
        if content_of(ready) != self.content:
            raise ReadError(f"{ready.name} is not what it was when this began: a worker read another one.")
        return Held(model=ready.model, files=files)


class ReadPictures:
    """(row, picture) of each that can be read. unread: the others, and why. lasting: all that was said of them says
    something of their bytes, which are those that were asked for."""

    def __init__(self, item: Pictures, held: Held) -> None:
        self.unread = list(item.left_out)
        self.lasting = not item.left_out
        self._item, self._held = item, held

    def __iter__(self) -> Iterator[tuple[int, Image.Image]]:
        gone = {row for row, _ in self.unread}
        for row, path in enumerate(self._item.paths):
            self._held.progress(row, None, path)
            if row in gone:
                continue
            try:
                data = self._held.files.read(path)
            except InspectorError as error:
                self.lasting = False
                self.refuse(row, error.says)
                continue
            if self._item.digests and digest_of(data) != self._item.digests[row]:
                self.lasting = False
                self.refuse(row, CHANGED)
                continue
            try:
                picture = open_picture(data)
            except InspectorError as error:
                self.refuse(row, error.says)
                continue
            yield row, picture

    def refuse(self, row: int, why: str) -> None:
        """This one is a row that says so."""
        self.unread.append((row, why))


def content_of(ready: ReadyModel) -> str:
    """What its weights are known by: the file's bytes, or where nobody took their digest the tensors that run."""
    if ready.sha256:
        return f"{ready.sha256} {ready.weights}"
    digest = hashlib.sha256()
    for name, tensor in unwrap(ready.model).state_dict().items():
        if isinstance(tensor, Tensor):
            plain = tensor.int_repr() if tensor.is_quantized else tensor
            digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
            digest.update(plain.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return f"tensors {digest.hexdigest()}"


def answer_digest(model: nn.Module, preprocessing: Preprocessing) -> str:
    """Of all that it answers to one fixed picture of noise, "" where it does not run on it: code of one's own may
    change under its name."""
    noise = torch.rand((1, *input_shape(preprocessing)), generator=torch.Generator().manual_seed(0))
    digest = hashlib.sha256()
    try:
        with capture(model) as borrowed, torch.no_grad():
            torch.manual_seed(0)
            for tensor in tensors_in(borrowed.model(like_the_model(noise, borrowed.model))):
                digest.update(repr(tuple(tensor.shape)).encode() + tensor.float().cpu().numpy().tobytes())
    except (RuntimeError, ValueError, TypeError):
        return ""
    return digest.hexdigest()


def digest_of(data: bytes) -> str:
    """By which a picture is known again."""
    return hashlib.sha256(data).hexdigest()


def ending(error: InspectorError) -> Outcome:
    """What ends the whole run: the model does not run, or is not there."""
    kind = "ReadError" if isinstance(error, ReadError) else "ExplainError"
    told = "\x00".join((kind, error.says, error.hint))
    return Outcome(data=_ENDING + told.encode("utf-8", "replace"), kept=False)


def raise_ending(data: bytes) -> None:
    """Raise what `ending` was given, where it was given anything."""
    if data.startswith(_ENDING):
        kind, says, hint = data.removeprefix(_ENDING).decode("utf-8").split("\x00", 2)
        raise _ERRORS[kind](says, hint=hint)
