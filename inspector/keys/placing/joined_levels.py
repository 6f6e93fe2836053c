"""Names that join to one level what the other side has as several (`units_0.fc` and `units.0.fc`, `width_fc1` and
`height.fc1`), brought to one form before words are compared."""

from __future__ import annotations

import re

from inspector.keys.placing.tree import Path

_JOINED = re.compile(r"(.*[A-Za-z])[_-]?([0-9]{1,4})")


def in_one_form(ours: Path, theirs: Path) -> tuple[Path, Path]:
    """Both names, each with the levels parted that the other has apart; words are parted by _."""
    # Asked of each module of thousands.
    text = ".".join((*ours, *theirs))
    if "-" in text:
        path = tuple(text.replace("-", "_").split("."))
        ours, theirs = path[: len(ours)], path[len(ours) :]
    if len(ours) < len(theirs):
        ours = _parted_by(ours, theirs)
    elif len(theirs) < len(ours):
        theirs = _parted_by(theirs, ours)
    more = sum(map(str.isdecimal, theirs)) - sum(map(str.isdecimal, ours))
    if not more:
        return ours, theirs
    return (_parted(ours, theirs, more), theirs) if more > 0 else (ours, _parted(theirs, ours, -more))


def _parted_by(path: Path, other: Path) -> Path:
    """The last level parted at the underscores where the other's last levels end it: width_fc1 by height.fc1."""
    if not path:
        return path
    first, found = path[-1], list[str]()
    for segment in reversed(other):
        if not first.endswith(f"_{segment}"):
            break
        first = first[: -len(segment) - 1]
        found.insert(0, segment)
    return (*path[:-1], first, *found) if first else path


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
