"""Commands written out for a POSIX shell, to be pasted: a name from a file arrives as that name and runs nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable


def join_words(words: Iterable[str]) -> str:
    """The line that runs a program with exactly these arguments. It is one line, whatever is in them."""
    return " ".join(map(quote_word, words))


def quote_word(word: str) -> str:
    """One argument. What cannot be seen is spelled in octal by printf: a line break would end a comment that the
    command stands in, and a turned direction would show another command than runs."""
    if word.isprintable():
        # zsh looks up =name as a program.
        return f"'{word}'" if word.startswith("=") and shlex.quote(word) == word else shlex.quote(word)
    return f"\"$(printf '{''.join(map(_spelled, os.fsencode(word)))}')\""


def operand(path: str) -> str:
    """A path as an argument that no program takes for an option."""
    return f"./{path}" if path.startswith("-") else path


def option_words(name: str, value: str) -> tuple[str, ...]:
    """An option with its value, also where the value looks like another option."""
    return (f"{name}={value}",) if value.startswith("-") else (name, value)


def _spelled(byte: int) -> str:
    char = chr(byte)
    if char.isalnum() and byte < 128:
        return char
    return {"%": "%%", " ": " ", ".": ".", "_": "_", "/": "/"}.get(char, f"\\{byte:03o}")
