"""What is asked of a worker: a kind of work and its arguments, known by a digest of both."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from inspector.installed import own_version
from inspector.jobs.subjects import FileRef

# A result of another engine is another result; raised where one of the same version would differ in numbers or words.
_ENGINE = "6"
# Of the classes and fields of all results that are kept: what was kept in another shape is never taken up, since what
# is not in it would only be missed where it is shown. tests/jobs/test_kept_shapes.py says what stands here.
_SHAPES = "fc2887b3773d0393"


@dataclass(frozen=True, kw_only=True)
class Job:
    """kind: its id in `kinds/table.py`. arguments: frozen dataclasses, tuples, plain values, arrays.

    known_by: what stands for the arguments in the digest where they follow from less; None for themselves.
    A field of a dataclass that does not take part in comparing (`compare=False`: where a file lies) is left out of it.
    near: digest of the file that it is about, so that it goes to a worker that knows that file.
    apart: the word of the worker that does nothing else, for what runs a person's own code; told by the arguments where
    a file in them has such code (`FileRef.apart`). "" for what any worker does.
    """

    kind: str
    arguments: tuple[Any, ...] = ()
    known_by: object = None
    near: str = ""
    apart: str = ""

    def __post_init__(self) -> None:
        if not self.apart:
            object.__setattr__(self, "apart", _apart(self.arguments))

    @cached_property
    def key(self) -> str:
        """sha256 of the question, as hexadecimal digits."""
        digest = hashlib.sha256()
        asked = self.arguments if self.known_by is None else self.known_by
        _feed(digest, (own_version(), _ENGINE, _SHAPES, self.kind, asked))
        return digest.hexdigest()


def _apart(arguments: Iterable[object]) -> str:
    """Of the files among the arguments, and in the fields of these."""
    for value in arguments:
        if isinstance(value, FileRef):
            found = value.apart
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            found = _apart(getattr(value, field.name) for field in dataclasses.fields(value))
        else:
            continue
        if found:
            return found
    return ""


def _feed(digest: Any, value: object) -> None:
    """Add a value with its type and length, so that no two values feed the same bytes."""
    match value:
        case Enum():
            _feed(digest, (type(value).__name__, value.value))
        case None | bool() | int() | float() | complex():
            _plain(digest, type(value).__name__, repr(value).encode())
        case str():
            _plain(digest, "str", value.encode("utf-8", "surrogatepass"))
        case bytes():
            _plain(digest, "bytes", value)
        case Path():
            _plain(digest, "path", str(value).encode("utf-8", "surrogateescape"))
        case tuple() | list():
            _plain(digest, "tuple", str(len(value)).encode())
            for one in value:
                _feed(digest, one)
        case Mapping():
            _feed(digest, tuple(sorted(value.items())))
        case frozenset() | set():
            _feed(digest, tuple(sorted(value)))
        case np.ndarray():
            _feed(digest, (value.dtype.str, value.shape))
            _plain(digest, "array", np.ascontiguousarray(value).tobytes())
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [field.name for field in dataclasses.fields(value) if field.compare is not False]
            _feed(digest, (type(value).__name__, tuple((name, getattr(value, name)) for name in fields)))
        case _:
            raise TypeError(f"A job's argument cannot be a {type(value).__name__}.")


def _plain(digest: Any, kind: str, data: bytes) -> None:
    digest.update(f"{kind}:{len(data)}:".encode())
    digest.update(data)
