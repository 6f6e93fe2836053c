"""One loading error that people bring, and what is to be said about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from string import Formatter

from inspector.error_messages.report import Cause

_SHORT = 120
_MOST_PLACES = 20
# The beginning of a line of code, right before the words of an error.
_RAISES = re.compile(r"(?:raise \w{2,60}|\w{2,40}Error)\([^()]{0,60}\Z", re.IGNORECASE)
_BEFORE = 130
# One element of a pattern and how often it is repeated; a group is its brackets and what is between them.
_TOKENS = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)([?*+]|\{[0-9,]+\})?", re.DOTALL)
# What stands for itself in a pattern, beside letters and digits. A space is no part of a word: it may be lost.
_PLAIN = frozenset("_-:;,'\"`/<>=#%&!@~")
_SMALL = (("ſ", "s"), ("ı", "i"), ("İ", "i"), ("\u212a", "k"))
# A quote, as a chat, a translation or markdown leaves it, or lost.
Q = "[\"'`*]{0,3}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of `MESSAGES`.

    kind: stable and kebab-case. patterns: each is found in the text with its white space made single, whatever the
    case, where a space may be lost; the first that is found counts. A pattern begins with a literal and repeats a
    bounded number of times, so that a search takes linear time. says, why, steps: sentences in which {name} stands for
    the pattern's group of that name. brief: what is said instead of `says` when the part of the message with its
    values is cut off. patch: Python lines, where {name!r} is the group as a literal. lines: makes them of every
    "name" in the text instead. causes: of which one is meant, when this part of a message does not tell. asks: this
    part does not tell the cause, and the rest is asked for. hides: kinds that say nothing more once this one was found.
    example: one real wording, for the tests.
    """

    kind: str
    patterns: tuple[str, ...]
    says: str
    why: str
    steps: tuple[str, ...]
    example: str
    brief: str = ""
    patch: str = ""
    lines: Callable[[Sequence[str]], str] | None = None
    causes: tuple[Cause, ...] = ()
    asks: bool = False
    hides: tuple[str, ...] = ()
    ours: bool = True

    def find(self, text: str, folded: str) -> tuple[re.Match[str] | None, bool]:
        """(the first place in the text, whether it is in a line of code that raises). folded: `fold(text)`.

        A traceback shows lines of code around the one that raised, so what is outside of code counts first.
        """
        in_code = None
        for pattern in self.patterns:
            if required_word(pattern) not in folded:
                continue
            for found in islice(_loose(pattern).finditer(text), _MOST_PLACES):
                if _RAISES.search(text, max(0, found.start() - _BEFORE), found.start()) is None:
                    return found, False
                in_code = in_code or found
        return in_code, True

    def lacks(self, found: re.Match[str]) -> bool:
        """Whether a value that the message names is cut off."""
        return bool(_fields(self.says) - _values(found).keys())

    def answer(self, found: re.Match[str]) -> str:
        """`says`, or `brief` when a value of it is not there."""
        if self.brief and self.lacks(found):
            return self.brief.format()
        return self.fill(self.says, found)

    def code(self, found: re.Match[str], text: str) -> str:
        """The lines for the loading code, "" when a value of them is not there."""
        values = _values(found)
        if self.lines is not None:
            named = [_values(other).get("name", "") for other in found.re.finditer(text)]
            return self.lines([name for name in named if name]) if "name" in values else ""
        return "" if _fields(self.patch) - values.keys() else self.fill(self.patch, found)

    def fill(self, template: str, found: re.Match[str]) -> str:
        """A sentence or patch with what the message named. Values are put in once, so braces in them stay braces."""
        return template.format_map(dict.fromkeys(_fields(template), "") | _values(found))


def _values(found: re.Match[str]) -> dict[str, str]:
    return {name: value.strip()[:_SHORT] for name, value in found.groupdict().items() if value and value.strip()}


@lru_cache(maxsize=1024)
def _fields(template: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name)


def fold(text: str) -> str:
    """The text in small letters, with those that `re` takes for s, i and k as well: ſ, ı, İ and the kelvin sign."""
    for other, letter in _SMALL:
        text = text.replace(other, letter)
    return text.lower()


@lru_cache(maxsize=256)
def required_word(pattern: str) -> str:
    """The longest word, in small letters, that stands in whatever the pattern finds; "" where none has to.

    A word is looked for in a hundredth of the time of a pattern that ignores the case.
    """
    words, depth = [""], 0
    for token, quantifier in _TOKENS.findall(pattern):
        if token == "|" and not depth:
            return ""
        depth += (token == "(") - (token == ")")
        escaped = token[0] == "\\" and not token[-1].isalnum()
        if depth or quantifier or not (escaped or token.isalnum() or token in _PLAIN):
            words.append("")
        else:
            words[-1] += token[-1]
    return max(words, key=len).lower()


@lru_cache(maxsize=256)
def _loose(pattern: str) -> re.Pattern[str]:
    """The pattern with every space optional: chats and screenshots lose them."""
    return re.compile(pattern.replace(" ", " ?"), re.IGNORECASE)
