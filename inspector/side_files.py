"""Files that a person names: opened where they are regular files, and the small ones read whole, up to a limit.

A checkpoint is read piece by piece (`checkpoint/source.py`). What stands beside it (a list of keys, class names, an
error message, a model's source, a picture) is read here and nowhere else: a device has no end, a pipe may never get
one, and the length that a file says it has is only what it had a moment ago.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from io import BytesIO
from typing import BinaryIO

from inspector.errors import LimitExceeded, ReadError
from inspector.limits import DEFAULT_LIMITS
from inspector.path_text import path_text
from inspector.units import shorten_middle

# What this process was given open: standard input, and what a shell writes for <(command).
_GIVEN = re.compile(r"-|/dev/(?:stdin|fd/(\d{1,9}))")
_BLOCK_NBYTES = 1 << 20
_SHOWN = 80
# How an address begins, where a path was expected; one letter is a drive of Windows. A Path writes one slash of two.
_SCHEME = re.compile(r"(\s*)([A-Za-z][A-Za-z0-9+.-]+):(?=[/\\]|\d+\.|localhost)(?://(?=/))?")
# Of addresses that other commands take.
_OTHERS = ("hf", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


class PathKind(Enum):
    """What lies at a path."""

    NOTHING = "nothing"
    FILE = "a file"
    FOLDER = "a folder"
    SPECIAL = "a device, socket or pipe"


def kind_of_path(path: str | os.PathLike[str]) -> PathKind:
    """What lies there, links followed. Raises ReadError for what no file can be called, or may not be looked at."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 Path("") would be the current folder
    except (FileNotFoundError, NotADirectoryError):
        return PathKind.NOTHING
    except (OSError, ValueError) as error:
        raise ReadError(f"{shown_name(path)} cannot be opened: {reason_of(error)}.", hint="Check the path.") from error
    if stat.S_ISREG(mode):
        return PathKind.FILE
    return PathKind.FOLDER if stat.S_ISDIR(mode) else PathKind.SPECIAL


def nothing_at(path: str | os.PathLike[str], name: str = "", *, what: str = "file") -> ReadError:
    """What to say where there is nothing at a path, or where an address was meant that is none. what: is missing."""
    text = os.fspath(path)
    found = _SCHEME.match(text) if isinstance(text, str) else None
    if found is None or found[2].lower() in _OTHERS:
        return ReadError(f"There is no {what} {name or shown_name(path)}.", hint="Check the path.")
    scheme, rest = found[2].lower(), text[found.end() :].replace("\\", "/")
    shown = shorten_middle(text, _SHOWN)
    if scheme == "file":
        return ReadError(f"{shown} is an address; a file of this machine is named by its path.", hint=f"Write {rest}.")
    if scheme not in ("http", "https"):
        return ReadError(
            f"{scheme}: is not asked: paths, http and https addresses and ids of the hub are opened.",
            hint="Fetch the file with its own tool and open it from disk.",
        )
    begins = "begins with a space" if found[1] else f"lacks the two slashes behind {scheme}:"
    right = f"{scheme}://{rest.lstrip('/')}"
    return ReadError(
        f"{shown} {begins}, and is no web address like that.", hint=f"Write {shorten_middle(right, _SHOWN)}."
    )


def shown_name(path: str | os.PathLike[str]) -> str:
    """What to call it in a sentence: its last part, cut where it is no name but a whole text."""
    text = os.fspath(path)
    name = path_text(os.path.basename(text) or text or '""')
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"


def reason_of(error: OSError | ValueError) -> str:
    """The system's own words, without the path that it repeats."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def open_regular(path: str | os.PathLike[str], name: str = "") -> tuple[int, os.stat_result]:
    """(descriptor, status) of a regular file, to be read and closed by the caller.

    Raises ReadError when there is none or it cannot be opened. Opening waits for nobody: a pipe, or a device that took
    the file's place just now, is refused and not waited for.
    """
    name = name or shown_name(path)
    kind = kind_of_path(path)
    if kind is PathKind.NOTHING:
        raise nothing_at(path, name)
    if kind is PathKind.FOLDER:
        raise ReadError(f"{name} is a folder, not a file.", hint="Open one of the files in it.")
    if kind is PathKind.FILE:
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
        try:
            descriptor = os.open(path, flags)
        except OSError as error:
            raise ReadError(f"{name} cannot be opened: {reason_of(error)}.") from error
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return descriptor, status
        os.close(descriptor)
    raise ReadError(f"{name} is no regular file (a device, socket or pipe).")


@contextmanager
def open_file(path: str | os.PathLike[str], most_nbytes: int) -> Iterator[BinaryIO]:
    """A file to be read in any order, without being held in memory; only what a shell gives is read whole.

    Raises as `read_bytes`.
    """
    if _GIVEN.fullmatch(os.fspath(path)):
        yield BytesIO(read_bytes(path, most_nbytes=most_nbytes))
        return
    with _regular(path) as file:
        nbytes = os.fstat(file.fileno()).st_size
        if nbytes > most_nbytes:
            raise _too_long(shown_name(path), f"{nbytes:,} bytes", most_nbytes)
        yield file


def read_bytes(path: str | os.PathLike[str], *, most_nbytes: int = DEFAULT_LIMITS.side_nbytes) -> bytes:
    """A whole file, or what comes from standard input for "-" and from an open descriptor for /dev/fd/63.

    Raises ReadError for what is not there, no regular file or not readable, LimitExceeded above most_nbytes.
    """
    given = _GIVEN.fullmatch(os.fspath(path))
    name = "Standard input" if given and not int(given[1] or 0) else shown_name(path)
    try:
        with _given(int(given[1] or 0)) if given else _regular(path) as file:
            nbytes = 0 if given else os.fstat(file.fileno()).st_size
            if nbytes > most_nbytes:
                raise _too_long(name, f"{nbytes:,} bytes", most_nbytes)
            found = bytearray()
            # To its end, not to the length it said: files in /proc say none, others are being written.
            while block := file.read(_BLOCK_NBYTES):
                found += block
                if len(found) > most_nbytes:
                    raise _too_long(name, f"more than {most_nbytes:,} bytes", most_nbytes)
    except OSError as error:
        raise ReadError(f"{name} cannot be read: {reason_of(error)}.") from error
    return bytes(found)


@contextmanager
def _regular(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    descriptor, _ = open_regular(path)
    with os.fdopen(descriptor, "rb") as file:
        yield file


@contextmanager
def _given(descriptor: int) -> Iterator[BinaryIO]:
    """What is open already; standard input through Python, which may have read ahead."""
    if descriptor:
        with os.fdopen(os.dup(descriptor), "rb") as file:
            yield file
    elif sys.stdin is None:
        raise ReadError("Standard input is closed.")
    else:
        yield sys.stdin.buffer


def encoding_of(raw: bytes) -> str:
    """How text is encoded, by the mark it may begin with: "utf-16", "utf-8-sig" or "utf-8"."""
    return next((name for mark, name in _MARKS.items() if raw.startswith(mark)), "utf-8")


def read_text(path: str | os.PathLike[str], what: str, *, hint: str = "") -> str:
    """The same as text: UTF-8, or UTF-16 where it begins with that mark. what: it should be, for the sentence.

    Raises ReadError also for what is no text.
    """
    raw = read_bytes(path)
    try:
        text = raw.decode(encoding_of(raw))
    except UnicodeDecodeError as error:
        raise _no_text(path, what, hint) from error
    if "\x00" in text:
        raise _no_text(path, what, hint)
    return text


def _no_text(path: str | os.PathLike[str], what: str, hint: str) -> ReadError:
    return ReadError(f"{shown_name(path)} is no text file, so it is no {what}.", hint=hint)


def _too_long(name: str, length: str, most: int) -> LimitExceeded:
    return LimitExceeded(f"{name} is too long: {length}; such files are read up to {most:,}.")
