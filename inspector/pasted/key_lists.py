"""The lists of a `load_state_dict` error, read out of text.

The wordings are those of torch/nn/modules/module.py (0.2 to 2.15), of `strict=False`'s return value, and of the two
libraries that print lists of their own: mmcv ("in source state_dict") and transformers ("were not used when ...").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from inspector.pasted.report import KeyLists, Shape

MOST_LISTS = 8
MOST_NAMES = 20_000
LONGEST_NAME = 512
_S = r"\s{1,40}"
_SIZE = r"torch\.Size\(\[([0-9,\s]{0,200})\]\)"


def _words(text: str) -> str:
    return text.replace(" ", _S)


_MARKS: tuple[tuple[str, str], ...] = (
    ("header", _words(r"Error\(s\) in loading state_dict for ([A-Za-z_][\w.]{0,200})\s{0,10}:")),
    ("missing", _words(r"[Mm]issing key\(s\) in state_dict\s{0,10}:")),
    ("unexpected", _words(r"[Uu]nexpected key\(s\) in state_dict\s{0,10}:")),
    ("missing", _words(r"missing keys in source state_dict\s{0,10}:")),
    ("unexpected", _words(r"unexpected keys? in source state_dict\s{0,10}:")),
    ("missing", r"missing_keys\s{0,4}=\s{0,4}\["),
    ("unexpected", r"unexpected_keys\s{0,4}=\s{0,4}\["),
    # torch before 0.4: a KeyError with the first name, or with a set.
    ("missing", _words(r'missing keys in state_dict:\s{0,4}"?(?:set\()?[\[{]')),
    ("one-unexpected", _words(r"unexpected key \\?[\"']([^\"'\n]{1,512})\\?[\"'] in state_dict")),
    ("unexpected", _words(r"were not used when initializing [A-Za-z_][\w.]{0,100}\s{0,10}:\s{0,10}\[")),
    ("missing", _words(r"and are newly initialized\s{0,10}:\s{0,10}\[")),
    (
        "mismatch",
        _words(rf"size mismatch for ([^:]{{1,600}}):\s{{0,40}}copying a param with shape {_SIZE} from checkpoint,")
        + _words(rf"\s{{0,40}}the shape in current model is {_SIZE}"),
    ),
    # torch 0.4 filled these two in the wrong order: the first is the model's.
    (
        "mismatch-swapped",
        _words(rf"size mismatch for ([^:]{{1,600}}):\s{{0,40}}copying a param of {_SIZE} from checkpoint,")
        + _words(rf"\s{{0,40}}where the shape is {_SIZE} in current model"),
    ),
    (
        "mismatch-swapped",
        _words(r"While copying the parameter named \"?([^\s\",]{1,512})\"?, whose dimensions in the model are ")
        + _words(rf"{_SIZE} and whose dimensions in the checkpoint are {_SIZE}"),
    ),
    (
        "mismatch",
        _words(rf"- ([^\s:]{{1,512}}): found shape {_SIZE} in the checkpoint and {_SIZE} in the model instantiated"),
    ),
    ("mismatch-cut", _words(r"size mismatch for ")),
)
_MARK = re.compile("|".join(f"(?P<m{i}>{pattern})" for i, (_, pattern) in enumerate(_MARKS)))
_ITEM = re.compile(r"""\s{0,200}(?:"([^"]{1,600})"|'([^']{1,600})')\s{0,40}""")
_BARE = re.compile(r"\s{0,200}([A-Za-z_0-9][\w.]{0,511})\s{0,40}(?=[,\]\n]|$)")
_DOTS = re.compile(r"\s{0,200}(?:\.\.\.|…|\[\s?(?:\.\.\.|…)[^\]\n]{0,80}\]|<[^>\n]{0,80}more[^>\n]{0,40}>)\s{0,40}")
_BREAK = re.compile(r"\s*\n\s*")


@dataclass(slots=True)
class _Open:
    """One error in the making; dicts keep order and drop repetitions."""

    model: str = ""
    start: int = 0
    missing: dict[str, None] = field(default_factory=dict)
    unexpected: dict[str, None] = field(default_factory=dict)
    reshaped: dict[str, tuple[Shape, Shape]] = field(default_factory=dict)
    cut: dict[str, None] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def close(self) -> KeyLists:
        return KeyLists(
            model=self.model,
            missing=tuple(self.missing),
            unexpected=tuple(self.unexpected),
            reshaped=tuple((name, *shapes) for name, shapes in self.reshaped.items()),
            cut=tuple(self.cut),
        )

    @property
    def empty(self) -> bool:
        return not (self.missing or self.unexpected or self.reshaped)


def read_key_lists(text: str) -> tuple[tuple[int, KeyLists], ...]:
    """(position in the text, lists) per error, each once, at most eight. Takes time linear in the text."""
    made: list[_Open] = []
    now = _Open()
    position = 0
    while (mark := _MARK.search(text, position)) is not None:
        number = next(i for i in range(len(_MARKS)) if mark.group(f"m{i}") is not None)
        what = _MARKS[number][0]
        groups = [g for g in mark.groups()[mark.re.groupindex[f"m{number}"] :] if g is not None]
        position = mark.end()
        section = "mismatch" if what.startswith("mismatch") else what.removeprefix("one-")
        if what == "header" or (section in now.seen and section != "mismatch" and what != "one-unexpected"):
            made.append(now)
            now = _Open(start=mark.start(), model=groups[0] if what == "header" else "")
        if now.empty and what != "header" and not now.model:
            now.start = mark.start()
        now.seen.add(section)
        if what == "one-unexpected":
            now.unexpected[_name(groups[0])] = None
            now.cut["unexpected"] = None
        elif what in ("missing", "unexpected"):
            position = _read_names(text, position, now.missing if what == "missing" else now.unexpected, now, what)
        elif what == "mismatch-cut":
            now.cut["mismatches"] = None
        elif what != "header" and len(now.reshaped) < MOST_NAMES:
            first, second = _shape(groups[1]), _shape(groups[2])
            now.reshaped[_name(groups[0])] = (second, first) if what == "mismatch-swapped" else (first, second)
    made.append(now)
    found: dict[KeyLists, int] = {}
    for one in made:
        if not one.empty:
            found.setdefault(one.close(), one.start)
    return tuple((start, lists) for lists, start in found.items())[:MOST_LISTS]


def _read_names(text: str, position: int, names: dict[str, None], now: _Open, what: str) -> int:
    """Read one list from its first name on; where it ends."""
    after_comma = True
    closes = text[position - 1] not in "[{"
    while True:
        if (dots := _DOTS.match(text, position)) is not None:
            now.cut[what] = None
            position, after_comma = dots.end(), False
        elif after_comma and (item := _ITEM.match(text, position) or _BARE.match(text, position)) is not None:
            name = _name(next(g for g in item.groups() if g is not None))
            closes = closes and item.re is _ITEM
            if name and len(name) <= LONGEST_NAME and len(names) < MOST_NAMES:
                names[name] = None
            elif name:
                now.cut[what] = None
            position, after_comma = item.end(), False
        else:
            break
        if text.startswith(",", position):
            position, after_comma = position + 1, True
        elif text.startswith(("...", "…"), position):
            continue
        else:
            break
    rest = text[position : position + 240].lstrip()
    # A name without its closing quote, a comma with nothing behind it, or no full stop at the very end.
    unfinished = after_comma and not rest.startswith(("]", "}"))
    if unfinished or rest[:1] in ('"', "'") or (not rest and closes):
        now.cut[what] = None
    return position


def _name(text: str) -> str:
    """A name that a terminal broke over two lines is one name."""
    return _BREAK.sub("", text).strip()


def _shape(text: str) -> Shape:
    numbers = [piece.strip() for piece in text.split(",") if piece.strip()]
    return tuple(int(n) for n in numbers if n.isascii() and n.isdigit() and len(n) < 16)
