"""What happens to a message between the terminal and the box it is pasted into. Each returns the text as it arrives."""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Callable

_MARKS = re.compile(r"(?:missing|unexpected) keys?(?:\(s\))?[^:\n]{0,40}:|size mismatch for", re.IGNORECASE)
_FULL = str.maketrans({":": "：", ",": "，", "(": "（", ")": "）", "?": "？", "!": "！"})


def _lines(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(change(line) for line in text.strip("\n").split("\n"))


def _hard(width: int, end: str) -> Callable[[str], str]:
    """As a terminal breaks lines: at a column, within words."""

    def wrap(text: str) -> str:
        pieces = [
            line[i : i + width] for line in text.strip("\n").split("\n") for i in range(0, max(1, len(line)), width)
        ]
        return end.join(pieces)

    return wrap


def _part(word: str) -> Callable[[str], str]:
    """One list of a message with its words, up to the next list."""

    def take(text: str) -> str:
        found = re.search(rf"{word} keys?(?:\(s\))?[^:\n]{{0,40}}:", text, re.IGNORECASE)
        if found is None:
            return text
        after = _MARKS.search(text, found.end())
        return text[found.start() : after.start() if after else len(text)].strip()

    return take


def _shortened(dots: str) -> Callable[[str], str]:
    """Lists of which the author left two names and dots."""

    def shorten(text: str) -> str:
        return re.sub(r'("[^"\n]+",\s*"[^"\n]+")(?:,\s*"[^"\n]+")+"?\.?', lambda found: found.group(1) + dots, text)

    return shorten


def _some_spaces(text: str) -> str:
    """Every third space lost, as when a picture is read."""
    pieces = text.split(" ")
    return "".join(piece + ("" if i % 3 == 2 else " ") for i, piece in enumerate(pieces)).rstrip()


WAYS: dict[str, Callable[[str], str]] = {
    "whole": lambda t: t,
    "first half": lambda t: t.strip()[: len(t.strip()) // 2],
    "second half": lambda t: t.strip()[len(t.strip()) // 2 :],
    "first two fifths": lambda t: t.strip()[: len(t.strip()) * 2 // 5],
    "first three quarters": lambda t: t.strip()[: len(t.strip()) * 3 // 4],
    "without the first third": lambda t: t.strip()[len(t.strip()) // 3 :],
    "last line alone": lambda t: t.strip().split("\n")[-1],
    "missing list alone": _part("missing"),
    "unexpected list alone": _part("unexpected"),
    "without the heading": lambda t: re.sub(r"\S*Error\(s\) in loading state_dict for \w+:", "", t),
    "wrapped at 80 columns": _hard(80, "\n"),
    "wrapped at 57, breaks made spaces": _hard(57, " "),
    "wrapped at words": lambda t: "\n".join(textwrap.fill(x, 60, break_long_words=False) for x in t.split("\n")),
    "indentation lost": _lines(str.strip),
    "line breaks made spaces": lambda t: " ".join(t.split()),
    "line breaks lost": lambda t: t.replace("\n", ""),
    "quoted": _lines(lambda line: f"> {line}"),
    "between backticks": lambda t: f"`{t.strip()}`",
    "in a fence": lambda t: f"```python\n{t.strip()}\n```",
    "bold": lambda t: f"**{t.strip()}**",
    "underscores escaped": lambda t: t.replace("_", "\\_"),
    "as HTML": lambda t: html.escape(t, quote=True),
    "typographic quotes": lambda t: re.sub(r"'([^'\n]*)'", r"‘\1’", re.sub(r'"([^"\n]*)"', r"“\1”", t)),
    "single quotes": lambda t: t.replace('"', "'"),
    "backticks for quotes": lambda t: t.replace('"', "`"),
    "Chinese quotes": lambda t: re.sub(r'"([^"\n]*)"', r"「\1」", t),
    "full-width punctuation": lambda t: t.translate(_FULL).replace(". ", "。"),
    "quotes lost": lambda t: t.replace('"', "").replace("'", ""),
    "the author's dots": _shortened(" ..."),
    "the author's many dots": _shortened("......"),
    "the author's [...]": _shortened(", [...]"),
    "Chinese around": lambda t: f"大佬们，运行的时候报错：{t.strip()}，请问怎么解决呢？谢谢！",
    "Korean around": lambda t: f"안녕하세요, 모델을 불러올 때 {t.strip()} 오류가 발생합니다.",
    "some spaces lost": _some_spaces,
    "spaces behind punctuation lost": lambda t: re.sub(r"([:,.()]) ", r"\1", t),
    "in small letters": str.lower,
    "behind a traceback": lambda t: (
        f'Traceback (most recent call last):\n  File "a.py", line 3, in main\n    run()\n{t}'
    ),
    "in a log": _lines(lambda line: f"2024-05-01 10:11:12,345 ERROR: {line}"),
    "under torchrun": _lines(lambda line: f"[rank0]: {line}"),
    "from pytest": _lines(lambda line: f"E       {line}"),
    "in colours": lambda t: "\x1b[31m" + t.replace(":", ":\x1b[0m\x1b[1;33m") + "\x1b[0m",
    "in colours without escape": lambda t: "[31m" + t.replace(":", ":[0m[1;33m") + "[0m",
    "as JSON": json.dumps,
    "as a repr": lambda t: repr(RuntimeError("\n\t" + t)),
    "with Windows line ends": lambda t: t.replace("\n", "\r\n"),
    "first half, full-width": lambda t: WAYS["full-width punctuation"](WAYS["first half"](t)),
    "second half, quotes lost": lambda t: WAYS["quotes lost"](WAYS["second half"](t)),
    "unexpected list alone, wrapped": lambda t: _hard(57, " ")(_part("unexpected")(t)),
    "missing list alone, as HTML": lambda t: html.escape(_part("missing")(t)),
}
