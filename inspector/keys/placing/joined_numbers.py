"""Names whose numbers are joined to a word on one side (`units_0.fc`) and a level of their own on the other
(`units.0.fc`), brought to one form before words are compared."""

from __future__ import annotations

import re

from inspector.keys.placing.tree import Path

_JOINED = re.compile(r"(.*[A-Za-z])[_-]?([0-9]{1,4})")


def in_one_form(ours: Path, theirs: Path) -> tuple[Path, Path]:
    """Both names, each with the numbers parted that the other has as levels of their own; words are parted by _."""
    # Asked of each module of thousands.
    more = sum(map(str.isdecimal, theirs)) - sum(map(str.isdecimal, ours))
    text = ".".join((*ours, *theirs))
    if "-" in text:
        path = tuple(text.replace("-", "_").split("."))
        ours, theirs = path[: len(ours)], path[len(ours) :]
    if not more:
        return ours, theirs
    return (_parted(ours, theirs, more), theirs) if more > 0 else (ours, _parted(theirs, ours, -more))


def _parted(path: Path, other: Path, more: int) -> Path:
    """more: how many more levels of the other side are numbers."""
    made: list[str] = []
    for segment in path:
        found = _JOINED.fullmatch(segment) if more and segment not in other else None
        if found is None:
            made.append(segment)
            continue
        made += [found[1].rstrip("_"), found[2]]
        more -= 1
    return tuple(made)
