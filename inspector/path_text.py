r"""A path as text that any table, JSON or terminal can hold, two of them never the same.

A name of a file is bytes, and Python keeps those that are no UTF-8 as halves of surrogate pairs, which most formats of
text refuse. They are written in octal, as `ls` and the shell's $'...' do: \377. A backslash is doubled only in a name
that would be read otherwise: one with such bytes, or whose own backslashes look like what is written for a sign that
cannot be seen (`render/visible.py`).
"""

from __future__ import annotations

import re

_UNDECODED = re.compile("[\udc80-\udcff]")
_ESCAPE = re.compile(r"\\(?:[0-7]{3}|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[nrt])")
_WRITTEN = re.compile(r"\\(\\|[0-7]{3})")
_UNDECODED_FROM = 0xDC00


def path_text(path: str) -> str:
    """The path as text: itself, wherever it can be read one way only. What is joined by "/" may be written in parts."""
    if "\\" not in path and path.isprintable():
        return path
    return "/".join(map(_text_of_name, path.split("/")))


def path_of_text(text: str) -> str:
    """The path that `path_text` wrote so."""
    if "\\" not in text:
        return text
    return "/".join(map(_name_of_text, text.split("/")))


def _text_of_name(name: str) -> str:
    if not _UNDECODED.search(name) and not _reads_as_written(name):
        return name
    return _UNDECODED.sub(lambda half: f"\\{ord(half[0]) - _UNDECODED_FROM:03o}", name.replace("\\", "\\\\"))


def _name_of_text(name: str) -> str:
    if not _reads_as_written(name):
        return name
    return _WRITTEN.sub(lambda one: "\\" if one[1] == "\\" else chr(_UNDECODED_FROM + int(one[1], 8)), name)


def _reads_as_written(name: str) -> bool:
    return "\\" in name and (not name.isprintable() or _ESCAPE.search(name) is not None)
