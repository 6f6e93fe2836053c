"""What a writer is: one file format that a state dict can be written in, and read back from by its own library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

State = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """One entry of `WRITERS`.

    id: what `writer=` names. suffix: of a file name. says: one sentence for the choice.
    write: the state to a path, with provenance as text; returns what of it the format could not carry, as sentences.
    read: the file it wrote, by the format's own library. Only ever called on a file this package has just written.
    keeps_text: whether provenance and metadata travel along.
    """

    id: str
    suffix: str
    says: str
    write: Callable[[State, Path, Mapping[str, str]], tuple[str, ...]]
    read: Callable[[Path], State]
    keeps_text: bool
