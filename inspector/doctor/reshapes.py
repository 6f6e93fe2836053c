"""Views and reshapes that were meant to change the order of dimensions: same sizes, another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from inspector.doctor.frames import called_by_person, own_frame, own_line
from inspector.doctor.named_views import Misnamed, misnamed_view
from inspector.doctor.report import SourceLine
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import human_shape

RESHAPED = FindingKind(
    "reshape-for-permute", Severity.WARNING, "A reshape where dimensions were to change places", (Severity.NOTICE,)
)
_MOST = 16
_VIEWS = ("reshape", "view", "reshape_as", "view_as")


@dataclass(frozen=True, slots=True)
class Reshape:
    """function: "reshape" or "view". before, after: shapes of the same sizes in another order, or (misnamed) such that
    a size is named after a dimension whose values are elsewhere."""

    function: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    line: SourceLine | None
    misnamed: Misnamed | None = None

    def order(self) -> tuple[int, ...]:
        """The permutation that gives `after`; of equal sizes the first comes first."""
        left = list(enumerate(self.before))
        found = []
        for size in self.after:
            place = next(one for one in left if one[1] == size)
            left.remove(place)
            found.append(place[0])
        return tuple(found)


def reshape_of(function: Any, args: Sequence[Any], output: Any) -> Reshape | None:
    """What such a function did, where the person's own code called it; None for any other."""
    name = getattr(function, "__name__", "")
    if name not in _VIEWS or not args or not isinstance(args[0], Tensor) or not isinstance(output, Tensor):
        return None
    before, after = tuple(args[0].shape), tuple(output.shape)
    # Dimensions of 1 may stand anywhere.
    moved = [n for n in before if n > 1] != [n for n in after if n > 1]
    if not moved or len(after) < 2 or len(before) < 2 or not called_by_person():
        return None
    if sorted(before) == sorted(after):
        return Reshape(name, before, after, own_line())
    misnamed = misnamed_view(before, after, own_frame()) if name in ("view", "reshape") else None
    return None if misnamed is None else Reshape(name, before, after, own_line(), misnamed)


def told_reshape(one: Reshape) -> str:
    """As a clause: "reshape (net.py, line 13: ...) makes 25x4x64 of 4x64x25 without moving a value"."""
    line = f" ({one.line.file}, line {one.line.line}: {one.line.text})" if one.line is not None else ""
    called = f": the dimension that it calls {one.misnamed.written} does not hold what that was" if one.misnamed else ""
    return (
        f"{one.function}{line} makes {human_shape(one.after)} of {human_shape(one.before)}, and leaves every value at "
        f"its place in memory{called}"
    )


def remedy_of_reshape(one: Reshape) -> str:
    """The permutation instead."""
    if one.misnamed is not None:
        return one.misnamed.remedy
    return f"Where the dimensions were to change places: permute({', '.join(map(str, one.order()))})."


def find_reshaped(reshapes: Sequence[Reshape], *, told: bool) -> Iterator[Finding]:
    """told: a finding that samples are mixed names the first already."""
    alike: dict[object, list[Reshape]] = {}
    for one in list(dict.fromkeys(reshapes))[int(told) :]:
        alike.setdefault((one.before, one.after, one.function), []).append(one)
    for one, *others in alike.values():
        lines = ", ".join(str(other.line.line) for other in others if other.line is not None)
        more = f" So {'does line' if len(others) == 1 else 'do lines'} {lines}." if lines else ""
        yield RESHAPED.found(
            f"{told_reshape(one)[0].upper()}{told_reshape(one)[1:]}.{more}",
            evidence=() if one.line is None else (("file", one.line.file), ("line", one.line.line)),
            remedy=remedy_of_reshape(one),
        )
