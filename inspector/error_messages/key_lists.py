"""The lists of a `load_state_dict` error, read out of text.

The wordings are those of torch/nn/modules/module.py (0.2 to 2.15), of `strict=False`'s return value, and of the two
libraries that print lists of their own: mmcv ("in source state_dict") and transformers ("were not used when ...").
White space within the words, quotes and the case of letters are no evidence: they are lost on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from inspector.checkpoint.bookkeeping import COUNTERS
from inspector.checkpoint.types import Shape
from inspector.error_messages.report import KeyLists

MOST_LISTS = 8
MOST_NAMES = 20_000
LONGEST_NAME = 512
_S = r"\s{0,40}"
_SIZE = r"torch\.\s?Size\s?\(\[([0-9,\s]{0,200})\]\)"
_END = r"\s{0,10}(?::|(?=[\"'`]))"


def _words(text: str) -> str:
    return text.replace(" ", _S)


_MARKS: tuple[tuple[str, str], ...] = (
    ("header", _words(r"E?rror\(s\) in loading state_ dict for ([A-Za-z_][\w.]{0,200}?)\s{0,10}:")),
    # torch before 0.4: a KeyError with the first name, or with a set.
    ("missing", _words(r'missing keys in state_ dict:\s{0,4}"?(?:set\()?[\[{]')),
    ("one-unexpected", _words(r"unexpected key \\?[\"'`]([^\"'`\n]{1,512})\\?[\"'`] in state_ dict")),
    ("one-unexpected", r"unexpected\s{1,40}key\s{1,40}(\w{1,100}\.[\w.]{1,400})\s{1,40}in\s{1,40}state_dict"),
    ("missing", _words(r"missing keys?(?:\(s\))? in state_ dict") + _END),
    ("unexpected", _words(r"unexpected keys?(?:\(s\))? in state_ dict") + _END),
    ("missing", _words(r"missing keys? in source state_ dict\s{0,10}:")),
    ("unexpected", _words(r"unexpected keys? in source state_ dict\s{0,10}:")),
    ("missing", r"missing_keys\s{0,4}=\s{0,4}\["),
    ("unexpected", r"unexpected_keys\s{0,4}=\s{0,4}\["),
    ("unexpected", _words(r"were not used when initializing [A-Za-z_][\w.]{0,100}\s{0,10}:\s{0,10}\[")),
    ("missing", _words(r"and are newly initialized\s{0,10}:\s{0,10}\[")),
    # An author's own short form: Unexpected key(s) ...: "module.features...", expected ".features...".
    ("expected", r"\bexpected\s{1,4}:?\s{0,4}(?=[\"'`][\w.]{1,200}[\"'`.])"),
    (
        "mismatch",
        _words(rf"size mismatch for ([^:]{{1,600}}): copying a param with shape {_SIZE} from checkpoint, ")
        + _words(rf"the shape in current model is {_SIZE}"),
    ),
    # torch 0.4 filled these two in the wrong order: the first is the model's.
    (
        "mismatch-swapped",
        _words(rf"size mismatch for ([^:]{{1,600}}): copying a param of {_SIZE} from checkpoint, ")
        + _words(rf"where the shape is {_SIZE} in current model"),
    ),
    (
        "mismatch-swapped",
        _words(
            r"While copying the parameter named [\"'`]?([^\s\"'`,]{1,512})[\"'`]?, whose dimensions in the model are "
        )
        + _words(rf"{_SIZE} and whose dimensions in the checkpoint are {_SIZE}"),
    ),
    (
        "mismatch",
        _words(rf"- ([^\s:]{{1,512}}): found shape {_SIZE} in the checkpoint and {_SIZE} in the model instantiated"),
    ),
    ("mismatch-cut", r"size\s{0,40}mismatch\s{0,40}for(?:\s{1,40}|(?=\w+\.))([A-Za-z_0-9][\w.]{0,511})?"),
)
_MARK = re.compile("|".join(f"(?P<m{i}>{pattern})" for i, (_, pattern) in enumerate(_MARKS)), re.IGNORECASE)
_ITEM = re.compile(r"""\s{0,200}(?:"([^"]{0,2000})"|'([^']{0,600})'|`([^`]{0,600})`)\s{0,40}""")
_BARE = re.compile(
    # With one line break of a terminal in it, when more names follow.
    r"\s{0,200}([A-Za-z_0-9][\w.]{0,511}?(?:\n[ \t]{0,20}[\w.]{1,300}(?=,))?)"
    r"(?=\s{0,40}(?:[,\]]|$)|[ \t]{0,40}\n|\.\.|\.(?:[ \t]|$|\n(?![ \t]{0,20}[\w.]{1,300},))"
    r"|\s{1,40}(?:unexpected|size) )",
    re.IGNORECASE,
)
# A line of one word behind a name without quotes: the name's end, or somebody's words.
_NEXT_LINE = re.compile(r"\n[ \t]{0,20}([\w.]{1,300})[ \t]{0,20}(?=\n|$)")
_GAP = re.compile(r"\s{0,200}(?=,\s{0,40}[\w.])")
_DOTS = re.compile(
    r"""[\s"'`]{0,200}(?:\.{2,}|…|\[\s?(?:\.\.\.|…)[^\]\n]{0,80}\]|\(\s?(?:\.\.\.|…)\s?\)"""
    r"|<[^>\n]{0,80}more[^>\n]{0,40}>|etc\b|and so on|等等?|省略)\s{0,40}"
)
# A name whose author cut it by dots and closed no quote, so that the next quote is another name's.
_UNCLOSED = re.compile(
    r"""\s{0,200}["'`][\w.-]{1,512}[ \t]{0,4}(?:\.{2,}|…)[ \t]{0,10}(?=\n|unexpected|size|$)""", re.IGNORECASE
)
_AFTER_DOTS = re.compile(r"""(?:"[\w.-]{1,512}"|'[\w.-]{1,512}'|`[\w.-]{1,512}`)\s{0,40}(?:[,.\]…]|$)""")
_SPACE = re.compile(r"\s+")
_BREAK = re.compile(r"\s*\n\s*")
_LASTS = ("weight", "bias", "running_mean", "running_var", *COUNTERS)
# Two names and more behind one another, each of a tensor and in quotes.
_TENSOR = r'"[\w.\s]{1,500}\.\s{0,40}(?:weight|bias|running_mean|running_var|num_batches_tracked|gamma|beta)"'
_RUN = re.compile(rf"{_TENSOR}(?:\s{{0,40}},\s{{0,40}}{_TENSOR}){{2,100}}")
_QUOTED = re.compile(r'"([^"]{1,600})"')


@dataclass(slots=True)
class _Open:
    """One error in the making; dicts keep order and drop repetitions."""

    model: str = ""
    start: int = 0
    headed: bool = False
    missing: dict[str, None] = field(default_factory=dict)
    unexpected: dict[str, None] = field(default_factory=dict)
    reshaped: dict[str, tuple[Shape, Shape]] = field(default_factory=dict)
    unsized: dict[str, None] = field(default_factory=dict)
    cut: dict[str, None] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    pasted: dict[str, None] = field(default_factory=dict)

    def close(self) -> KeyLists:
        return KeyLists(
            model=self.model,
            missing=tuple(self.missing),
            unexpected=tuple(self.unexpected),
            reshaped=tuple((name, *shapes) for name, shapes in self.reshaped.items()),
            cut=tuple(self.cut),
            unsized=tuple(name for name in self.unsized if name not in self.reshaped),
            pasted=tuple(self.pasted),
            headed=self.headed,
        )

    def add(self, what: str, names: Iterable[str]) -> None:
        """Put names into the list of missing or of unexpected ones."""
        into = self.missing if what == "missing" else self.unexpected
        for name in names:
            into[name] = self.pasted[what] = None

    def other_list(self) -> str:
        """The list that an author's own "expected" begins: the other one of that before it, "" without any."""
        there = [one for one in ("unexpected", "missing") if one in self.pasted]
        return {"unexpected": "missing", "missing": "unexpected"}[there[0]] if len(there) == 1 else ""

    @property
    def empty(self) -> bool:
        return not (self.missing or self.unexpected or self.reshaped or self.unsized)


def read_key_lists(text: str) -> tuple[tuple[int, KeyLists], ...]:
    """(position in the text, lists) per error, each once, at most eight. Takes time linear in the text."""
    made: list[_Open] = []
    now = _Open()
    position = 0
    while (mark := _MARK.search(text, position)) is not None:
        number = next(i for i in range(len(_MARKS)) if mark.group(f"m{i}") is not None)
        what = _MARKS[number][0]
        groups = [g for g in mark.groups()[mark.re.groupindex[f"m{number}"] :] if g is not None]
        before, position = position, mark.end()
        authored = what == "expected"
        if authored:
            if now.empty:
                now.add("unexpected", (name.rstrip(".") for name in _names_before(text, before, mark.start())))
            what = now.other_list()
            if not what:
                continue
            now.cut |= {"missing": None, "unexpected": None}
        section = "mismatch" if what.startswith("mismatch") else what.removeprefix("one-")
        if what == "header" or (section in now.seen and section != "mismatch" and what != "one-unexpected"):
            made.append(now)
            now = _Open(start=mark.start(), model=groups[0] if what == "header" else "", headed=what == "header")
        if now.empty and what != "header" and not now.model:
            now.start = mark.start()
        if section == "unexpected" and now.empty and not now.headed:
            # torch lists the missing ones first: what stands before is the end of that list.
            now.add("missing", _names_before(text, before, mark.start()))
            now.cut |= {"missing": None} if now.missing else {}
        now.seen.add(section)
        if what == "one-unexpected":
            _add(now.unexpected, groups[0], now, "unexpected")
            now.cut["unexpected"] = now.pasted["unexpected"] = None
        elif what in ("missing", "unexpected"):
            names: dict[str, None] = {}
            position = _read_names(text, position, names, now, what)
            now.add(what, (name.lstrip(".") if authored else name for name in names))
            if text[mark.end() - 1] in "[{":
                now.pasted[what] = None
        elif what == "mismatch-cut":
            now.cut["mismatches"] = now.pasted["mismatches"] = None
            if groups and "." in groups[0]:
                now.unsized[groups[0].strip(".")] = None
        elif what != "header" and len(now.reshaped) < MOST_NAMES:
            first, second = _shape(groups[1]), _shape(groups[2])
            if first == second:
                continue  # Copying failed for another reason, which the line quotes; the messages know it.
            now.reshaped[_name(groups[0])] = (second, first) if what == "mismatch-swapped" else (first, second)
            now.pasted["mismatches"] = None
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
        if after_comma and (torn := _UNCLOSED.match(text, position)) is not None:
            now.cut[what] = now.pasted[what] = None
            return torn.end()
        if (dots := _DOTS.match(text, position)) is not None:
            now.cut[what] = None
            # An author's dots in the middle: the list goes on behind them, with or without a comma.
            position, after_comma = dots.end(), _AFTER_DOTS.match(text, dots.end()) is not None
        elif after_comma and (item := _ITEM.match(text, position)) is not None:
            _add(names, next(g for g in item.groups() if g is not None), now, what)
            position, after_comma = item.end(), False
        elif after_comma and (item := _BARE.match(text, position)) is not None and _is_bare(item, text, names):
            closes = False
            position, after_comma = item.end(), False
            name = item.group(1)
            broken = _NEXT_LINE.match(text, position)
            if broken is not None and not _is_ended(name, names) and _is_ended(name + broken.group(1), names):
                name, position, broken = name + broken.group(1), broken.end(), None
            doubtful = (position == len(text) or broken is not None) and not _is_ended(name, names)
            if names and (doubtful or text.startswith("..", position)):
                now.cut[what] = None  # Without a quote behind it, nobody knows whether this name is whole.
            else:
                _add(names, name, now, what)
        elif after_comma and (gap := _GAP.match(text, position)) is not None:
            # Quotes with nothing between them, and then the quotes were lost.
            names[""] = None
            position, after_comma = gap.end(), False
        else:
            break
        if text.startswith(",", position):
            position, after_comma = position + 1, True
        elif text.startswith(("..", "…"), position) or after_comma:
            continue
        else:
            break
    rest = text[position : position + 240].lstrip()
    # A name without its closing quote, a comma with nothing behind it, or no full stop at the very end.
    unfinished = after_comma and not rest.startswith(("]", "}"))
    if (unfinished or rest[:1] in ('"', "'") or (not rest and closes)) and (names or rest[:1] in ('"', "'")):
        now.cut[what] = None
        if len(names) > 1 and _is_torn(next(reversed(names))):
            names.popitem()
    return position


def _is_bare(item: re.Match[str], text: str, names: dict[str, None]) -> bool:
    """Whether a word without quotes is a name: prose begins with a word, too."""
    name = item.group(1)
    return bool(names) or "." in name or "_" in name or text.startswith((",", "]"), item.end())


def _add(names: dict[str, None], text: str, now: _Open, what: str) -> None:
    """Add what stands between two quotes: a name, one that its author shortened by dots, or several with commas."""
    for piece in text.split(","):
        name = _name(piece)
        short = name.rstrip(" .…")
        if name.endswith(("..", "…")):
            now.cut[what] = None
        if (not short and text) or len(short) > LONGEST_NAME or len(names) >= MOST_NAMES:
            now.cut[what] = None
        else:
            names[short] = None


def _names_before(text: str, start: int, stop: int) -> list[str]:
    """The quoted names that lead up to a place, in order; [] when what stands there is no list of names."""
    names: list[str] = []
    at = _before_space(text, start, stop)
    while text[at - 1 : at] in (".", ",") and at > start:
        at = _before_space(text, start, at - 1)
    while len(names) < MOST_NAMES and at > start and text[at - 1] == '"':
        opened = text.rfind('"', max(start, at - 2 - LONGEST_NAME), at - 1)
        name = _name(text[opened + 1 : at - 1])
        if opened < 0 or not _is_name(name):
            break
        names.append(name)
        comma = _before_space(text, start, opened)
        if text[comma - 1 : comma] != ",":
            break
        at = _before_space(text, start, comma - 1)
    return names[::-1]


def _before_space(text: str, start: int, at: int) -> int:
    while at > start and text[at - 1].isspace():
        at -= 1
    return at


def names_alone(text: str) -> tuple[int, tuple[str, ...]]:
    """(place, names) of a list of quoted tensor names without any words before it, as it is pasted from its middle."""
    run = _RUN.search(text)
    if run is None:
        return 0, ()
    return run.start(), tuple(dict.fromkeys(_name(name) for name in _QUOTED.findall(run.group(0))))


def _is_name(text: str) -> bool:
    return bool(text) and "." in text and all(c.isalnum() or c in "._-/" for c in text)


def _name(text: str) -> str:
    """A name that a terminal broke over two lines is one name, also where the break became a space."""
    name = _SPACE.sub("", text)
    return name if all(c.isalnum() or c in "._-/:" for c in name) else _BREAK.sub("", text).strip()


def _is_torn(name: str) -> bool:
    """Whether a name at the end of a text ends within a word that ends most names: "bn1.running_m"."""
    last = name.rpartition(".")[2]
    return last not in _LASTS and any(word.startswith(last) for word in _LASTS)


def _is_ended(name: str, names: Iterable[str]) -> bool:
    """Whether a name at the end of a text ends with a word that ends tensors' names, or those before it."""
    last = name.rpartition(".")[2]
    return last in _LASTS or any(last == other.rpartition(".")[2] for other in names)


def _shape(text: str) -> Shape:
    numbers = [piece for piece in _SPACE.sub("", text).split(",") if piece]
    return tuple(int(n) for n in numbers if n.isascii() and n.isdigit() and len(n) < 16)
