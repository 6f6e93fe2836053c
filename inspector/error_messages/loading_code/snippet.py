"""The Python in a pasted text, if there is any: whole, between a chat's fences, behind a shell's prompts."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass

# Characters. Longer scripts are read up to here.
_MOST = 100_000
_FENCE = re.compile(r"^[ \t]{0,12}```[^\n]{0,40}\n(.*?)^[ \t]{0,12}```", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^(?:>>> ?|\.\.\. ?|In \[[0-9]{0,5}\]: |   \.\.\.: )")
# Commands of notebooks, which are no Python.
_MAGIC = re.compile(r"^([ \t]*)[!%][^\n]*$", re.MULTILINE)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE)
# Some such word stands in every line that loads; without one the text is not parsed.
_WORDS = ("load", "state_dict")
_MARKS = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u200b": None, "\ufeff": None})


@dataclass(frozen=True, slots=True)
class Snippet:
    """tree: parsed. first: number of the pasted text's line that the tree's line 1 is. lines: of the Python."""

    tree: ast.Module
    first: int
    lines: tuple[str, ...]

    def line_of(self, node: ast.AST) -> int:
        """In the pasted text, from 1."""
        return int(getattr(node, "lineno", 1)) + self.first - 1

    def text_of(self, node: ast.AST) -> str:
        """The line that it begins in."""
        number = int(getattr(node, "lineno", 1))
        return self.lines[number - 1].strip() if number <= len(self.lines) else ""


def find_snippet(text: str) -> Snippet | None:
    """None where the text is no Python, or loads nothing. Never raises for strange text, runs nothing."""
    text = text[:_MOST].replace("\r\n", "\n").replace("\r", "\n").translate(_MARKS)
    if not any(word in text for word in _WORDS):
        return None
    found = _FENCE.search(text)
    parts = [(found.group(1), text.count("\n", 0, found.start(1)) + 1)] if found else []
    cut = _TRACEBACK.search(text)
    parts.append((text[: cut.start()] if cut else text, 1))
    for part, first in parts:
        snippet = _parsed(part, first)
        if snippet is not None:
            return snippet
    return None


def _parsed(text: str, first: int) -> Snippet | None:
    lines = text.split("\n")
    if any(line.startswith((">>>", "In [")) for line in lines):
        # What a shell printed has no prompt, and is none of the code.
        lines = [_PROMPT.sub("", line) if _PROMPT.match(line) else "" for line in lines]
    code = textwrap.dedent(_MAGIC.sub(r"\1pass", "\n".join(lines)))
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not any(isinstance(node, ast.Attribute | ast.Call) for node in ast.walk(tree)):
        return None
    return Snippet(tree=tree, first=first, lines=tuple(code.split("\n")))
