"""Names from a file as they may be shown to a person, whatever characters are in them."""

from __future__ import annotations

import unicodedata

# Control characters, directions of writing, halves of surrogate pairs, and what a private font would draw.
_UNSEEN = {"Cc", "Cf", "Cs", "Co"}


def visible(text: str) -> str:
    r"""The same text with what cannot be seen written out: a turned direction as \u202e, a bell as \x07.

    A name must not read otherwise than it is, and half a surrogate pair could not even be sent. Line breaks and tabs
    stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written(char) for char in text)


def one_line(text: str) -> str:
    """The same for a terminal or a log: line breaks, tabs and foreign spaces are written out too."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _written(char: str) -> str:
    if char in "\n\r\t" or unicodedata.category(char) not in _UNSEEN:
        return char
    return ascii(char)[1:-1]
