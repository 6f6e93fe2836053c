"""A file's weights without what is wrapped around them, and without any target.

The dicts around the state dict are opened and the segments that tools put into names are dropped, as far as the names
alone tell: "module", which people choose too, only where every name begins with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from inspector.checkpoint.bookkeeping import COUNTERS
from inspector.checkpoint.types import StateDict
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.errors import ExportError
from inspector.units import counted

_AMBIGUOUS = "module"
_SURE = WRAPPER_SEGMENTS - {_AMBIGUOUS}

PROOF = "Names changed, every byte of the numbers equal. Whether a model takes them was not asked: no target was given."


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwrapped:
    """state: the tensors under their new names, the same numbers. opened: the keys that led to it. dropped: (segment,
    from how many names). left_out: counters that a tool kept beside the wrapped names."""

    state: StateDict
    opened: tuple[str, ...]
    dropped: tuple[tuple[str, int], ...]
    left_out: tuple[str, ...]

    @property
    def says(self) -> str:
        """What was done, in one sentence; "" where nothing was wrapped."""
        parts = []
        if self.opened:
            parts.append(f"taken out of {' / '.join(self.opened)}")
        parts += [f'"{segment}." dropped from {counted(n, "name")}' for segment, n in self.dropped]
        if self.left_out:
            kind = "a counter" if len(self.left_out) == 1 else "counters"
            parts.append(f"{', '.join(self.left_out)} left out ({kind})")
        whole = ", ".join(parts)
        return f"{whole[0].upper()}{whole[1:]}." if whole else ""


def unwrap(state: StateDict) -> Unwrapped:
    """Raises ExportError where two tensors would get one name."""
    names = [tensor.name for tensor in state.tensors]
    beside = {name for name in names if name in COUNTERS}
    leading = _leading([_without_sure(name) for name in names if name not in beside])
    wraps = {name: _segments(name, leading) for name in names if name not in beside}
    dropped = Counter(segment for segments in wraps.values() for segment in set(segments))
    if not dropped:
        return Unwrapped(state=state, opened=state.path, dropped=(), left_out=())
    new = {name: _bare(name, leading) for name in wraps}
    taken: dict[str, str] = {}
    for old, name in new.items():
        if name in taken:
            raise ExportError(
                f"Nothing was written: {taken[name]} and {old} would both be called {name}.",
                hint="Name the model it is for: a repair tells which of them it means.",
            )
        taken[name] = old
    tensors = tuple(replace(tensor, name=new[tensor.name]) for tensor in state.tensors if tensor.name in new)
    versions = {_module(path, leading): version for path, version in state.versions}
    return Unwrapped(
        state=replace(state, tensors=tensors, versions=tuple(versions.items())),
        opened=state.path,
        dropped=tuple(sorted(dropped.items())),
        left_out=tuple(sorted(beside)),
    )


def _without_sure(name: str) -> list[str]:
    *around, last = name.split(".")
    return [*(segment for segment in around if segment not in _SURE), last]


def _leading(names: Iterable[list[str]]) -> int:
    """How many times every name begins with "module"."""
    held = list(names)
    count = 0
    while held and all(len(name) > count + 1 and name[count] == _AMBIGUOUS for name in held):
        count += 1
    return count


def _segments(name: str, leading: int) -> list[str]:
    return [s for s in name.split(".")[:-1] if s in _SURE] + [_AMBIGUOUS] * leading


def _bare(name: str, leading: int) -> str:
    return ".".join(_without_sure(name)[leading:])


def _module(path: str, leading: int) -> str:
    """The path of a module, whose wrappers are modules too."""
    return ".".join([segment for segment in path.split(".") if segment not in _SURE][leading:])
