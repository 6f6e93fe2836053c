"""Taking wrappers off names, so that the architecture inside can be compared.

Training frameworks put a model inside another module, which adds a segment to every name: in front ("module.",
"model.") or in the middle ("features.module.0.weight"). Three observations take them off, none from a list of whole
prefixes: segments that wrapper classes of torch's own ecosystem add; a segment that is its parent's only child and
occurs in no known architecture; and a prefix after which many names are known with their shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS

MOST_PREFIXES = 4
DEEPEST_PREFIX = 12  # segments, after wrappers are off


@dataclass(frozen=True, kw_only=True)
class View:
    """A state dict under one hypothesis about its wrappers.

    shapes: name without wrappers -> shape, for the tensors under the prefix. outside: names of the others, as the
    file has them. wrapper: what was taken off, for people: "module.", "…module." when it sits in the middle.
    weighty: how many of all the names are not bookkeeping.
    """

    shapes: Mapping[str, Shape]
    outside: tuple[str, ...]
    wrapper: str
    weighty: int

    @cached_property
    def counters(self) -> frozenset[str]:
        """The names under the prefix that are bookkeeping."""
        return frozenset(name for name in self.shapes if is_bookkeeping(name))


def views(
    shapes: Mapping[str, Shape],
    aside: tuple[str, ...],
    known: Container[tuple[str, Shape]],
    segments: Collection[str],
) -> list[View]:
    """The hypotheses worth comparing, the least intervention first.

    shapes: name -> shape as the file has them. aside: names that are outside in every view. known: every (name,
    shape) of the index. segments: every segment of its names, which are never dropped from the middle.
    """
    weighty = sum(not is_bookkeeping(name) for name in shapes) + len(aside)
    found: list[View] = []
    # "module" is also part of a few architectures' own names, so both readings compete where it occurs.
    inners = [contract(shapes, segments)]
    if not WRAPPER_SEGMENTS.isdisjoint(segment for name in shapes for segment in name.split(".")):
        inners.append(contract(shapes, frozenset(segments) - WRAPPER_SEGMENTS))
    for inner in inners:
        for prefix in _prefixes(shapes, inner, known, segments):
            inside = {own.removeprefix(prefix): name for name, own in inner.items() if own.startswith(prefix)}
            if any(inside.keys() == view.shapes.keys() for view in found):
                continue
            taken = Counter(taken_off(name, short) for short, name in inside.items())
            found.append(
                View(
                    shapes={short: shapes[name] for short, name in inside.items()},
                    outside=(*(name for name, own in inner.items() if not own.startswith(prefix)), *aside),
                    wrapper=max(taken, key=lambda text: (taken[text], text), default=""),
                    weighty=weighty,
                )
            )
    return found


def contract(names: Iterable[str], segments: Collection[str]) -> dict[str, str]:
    """name -> the name without wrapper segments; all unchanged where two names would become one."""
    names = tuple(names)
    # Most files have none of them, which one look at all names shows.
    text = "\n".join(names)
    wrappers = [segment for segment in WRAPPER_SEGMENTS if segment not in segments and segment in text]
    plain = {name: _without_wrappers(name, wrappers) for name in names}
    if len(set(plain.values())) < len(names):
        plain = {name: name for name in names}
    children = _children(own for own in plain.values() if not is_bookkeeping(own))
    shorter = {"": ""}
    contracted = {}
    for name, own in plain.items():
        parent, dot, leaf = own.rpartition(".")
        # Names of one module share the way to it, which is walked once.
        inner = _without_only_children(parent, children, segments, shorter) if dot else ""
        contracted[name] = f"{inner}.{leaf}" if inner else leaf
    return contracted if len(set(contracted.values())) == len(names) else plain


def _children(names: Iterable[str]) -> dict[str, set[str]]:
    """Module's path -> the segments that come behind it."""
    found: dict[str, set[str]] = {}
    for name in names:
        parent, _, segment = name.rpartition(".")
        while parent not in found:
            found[parent] = {segment}
            if not parent:
                break
            parent, _, segment = parent.rpartition(".")
        else:
            found[parent].add(segment)
    return found


def _without_wrappers(name: str, wrappers: Collection[str]) -> str:
    """The name without these segments of its module's path."""
    if not any(wrapper in name for wrapper in wrappers):
        return name
    *path, leaf = name.split(".")
    return ".".join([segment for segment in path if segment not in wrappers] + [leaf])


def _without_only_children(
    path: str, children: Mapping[str, set[str]], segments: Collection[str], known: dict[str, str]
) -> str:
    """A module's path without segments that are their parent's only child. known: of paths asked before, with "";
    written to."""
    waiting, here = [], path
    while here not in known:
        waiting.append(here)
        here = here.rpartition(".")[0]
    for one in reversed(waiting):
        parent, _, segment = one.rpartition(".")
        kept = known[parent]
        alone = children.get(parent) == {segment}
        if not alone or segment in segments:
            kept = f"{kept}.{segment}" if kept else segment
        known[one] = kept
    return known[path]


def _prefixes(
    shapes: Mapping[str, Shape],
    inner: Mapping[str, str],
    known: Container[tuple[str, Shape]],
    segments: Collection[str],
) -> tuple[str, ...]:
    """ "" and the prefixes after which the most names are known with their shapes, most votes first."""
    votes: Counter[str] = Counter()
    # Equal blocks end in the same names: asked once.
    asked: dict[tuple[str, Shape], bool] = {}
    for name, own in inner.items():
        shape = shapes[name]
        for start in _starts(own, segments):
            behind = (own[start:], shape)
            if behind not in asked:
                asked[behind] = behind in known
            if asked[behind]:
                votes[own[:start]] += 1
    best = votes.most_common(MOST_PREFIXES)
    # A prefix that explains far fewer names than the best is a coincidence of short names ("0.weight").
    return ("", *(prefix for prefix, count in best if count * 5 >= best[0][1]))


def _starts(name: str, segments: Collection[str]) -> list[int]:
    """Where a known name could begin behind a prefix, the shortest prefix first: no segment of it is an unknown one."""
    found: list[int] = []
    end, level = len(name), name.count(".")
    while level:
        dot = name.rfind(".", 0, end)
        if name[dot + 1 : end] not in segments:
            break
        if level <= DEEPEST_PREFIX:
            found.append(dot + 1)
        end, level = dot, level - 1
    return found[::-1]


def taken_off(name: str, short: str) -> str:
    """What was removed from a name, as one text."""
    if name == short:
        return ""
    if name.endswith(f".{short}"):
        return name[: len(name) - len(short)]
    rest = short.split(".")
    removed = []
    leading = True
    prefix = []
    for segment in name.split("."):
        if rest and segment == rest[0]:
            rest.pop(0)
            leading = False
        elif leading:
            prefix.append(segment)
        else:
            removed.append(segment)
    front = "".join(f"{s}." for s in prefix)
    return front + "…" + "".join(f"{s}." for s in removed)
