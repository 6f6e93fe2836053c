"""A file's weights without what is wrapped around them, and without any target.

The dicts around the state dict are opened and the segments that tools put into names are dropped, as far as the names
alone tell: "module", which people choose too, only where every name begins with it. What else every name begins with
("net.", "backbone.model.") may be a wrapper of somebody's own or a part of the network: it comes off only where asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from inspector.checkpoint.bookkeeping import COUNTERS
from inspector.checkpoint.several import sets_of_weights
from inspector.checkpoint.tree import module_tree
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.errors import ExportError
from inspector.exports.one_of_several import several_sets
from inspector.units import counted

_AMBIGUOUS = "module"
_SURE = WRAPPER_SEGMENTS - {_AMBIGUOUS}

# Of what every name begins with; deeper ones are a network's own nesting.
_MOST_SHARED = 4

_NO_TARGET = "Whether a model takes them was not asked: no target was given."


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwrapped:
    """state: the tensors under their new names, the same numbers. opened: the keys that led to it. dropped: (segment,
    from how many names). left_out: counters that a tool kept beside the wrapped names. joined: how many groups of
    tensors, one per part of the network, became one. shared: what every name begins with and was left, the shortest
    first ("backbone", "backbone.model")."""

    state: StateDict
    opened: tuple[str, ...]
    dropped: tuple[tuple[str, int], ...]
    left_out: tuple[str, ...]
    joined: int = 0
    shared: tuple[str, ...] = ()

    @property
    def proof(self) -> str:
        """What is known of the new file, and what is not."""
        names = "Names changed" if self.dropped or self.joined else "No name changed"
        return f"{names}, every byte of the numbers equal. {_NO_TARGET}"

    @property
    def says(self) -> str:
        """What was done, in one sentence; "" where nothing was wrapped."""
        parts = []
        if self.opened:
            parts.append(f"taken out of {' / '.join(self.opened)}")
        if self.joined:
            parts.append(f"{counted(self.joined, 'group')} joined, each under its key")
        parts += [f'"{segment}." dropped from {counted(n, "name")}' for segment, n in self.dropped]
        if self.left_out:
            kind = "a counter" if len(self.left_out) == 1 else "counters"
            parts.append(f"{', '.join(self.left_out)} left out ({kind})")
        whole = ", ".join(parts)
        return f"{whole[0].upper()}{whole[1:]}." if whole else ""


def unwrap(state: StateDict, *, joined: int = 0, prefix: str = "") -> Unwrapped:
    """joined: of how many groups it was made (`only_weights`). prefix: what the user says comes off, too, in front of
    every name once the wrappers are off. Raises ExportError where two tensors would get one name, where it cannot be
    told which tool put "module" before some of them, and where a name does not begin with the prefix."""
    found = _without_wrappers(state, joined)
    shared = _shared_prefixes(found.state)
    if not prefix:
        return replace(found, shared=shared)
    begins = f"{prefix}."
    other = next((t.name for t in found.state.tensors if not t.name.startswith(begins) or t.name == begins), None)
    if other is not None:
        hint = f'Every name begins with "{shared[-1]}.".' if shared else "The names have no beginning in common."
        raise ExportError(f'Nothing was written: {other} does not begin with "{begins}".', hint=hint)
    tensors = tuple(replace(t, name=t.name[len(begins) :]) for t in found.state.tensors)
    inside = (pair for pair in found.state.versions if f"{pair[0]}.".startswith(begins))
    return replace(
        found,
        state=replace(
            found.state,
            tensors=tensors,
            modules=module_tree(tensors),
            versions=tuple((path[len(begins) :], version) for path, version in inside),
        ),
        dropped=(*found.dropped, (prefix, len(tensors))),
    )


def _shared_prefixes(state: StateDict) -> tuple[str, ...]:
    """Of a single tensor its whole path would be one, which says nothing."""
    if len(state.tensors) < 2:
        return ()
    paths = [tensor.name.split(".")[:-1] for tensor in state.tensors]
    same = [segments[0] for segments in takewhile(lambda s: len(set(s)) == 1, zip(*paths, strict=False))]
    if not all(same):
        return ()
    return tuple(".".join(same[: n + 1]) for n in range(min(len(same), _MOST_SHARED)))


def _without_wrappers(state: StateDict, joined: int) -> Unwrapped:
    names = [tensor.name for tensor in state.tensors]
    beside = {name for name in names if name in COUNTERS}
    leading = _leading([_without_sure(name) for name in names if name not in beside])
    wraps = {name: _segments(name, leading) for name in names if name not in beside}
    dropped = Counter(segment for segments in wraps.values() for segment in set(segments))
    if not dropped:
        return Unwrapped(state=state, opened=state.path, dropped=(), left_out=(), joined=joined)
    _check_mixed(wraps)
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
        joined=joined,
    )


def only_weights(checkpoint: Checkpoint) -> tuple[StateDict | None, int]:
    """The weights of a file where nobody says which, and of how many groups they are joined (0 for one that lies so in
    the file). None where it has none.

    A network saved as dicts in dicts is one group per part; those are joined. Raises ExportError where there are
    several sets of weights: to write one of them would lose the others.
    """
    groups = sets_of_weights(checkpoint)
    if len(groups) < 2:
        return checkpoint.weights, 0
    if all("." not in tensor.name for group in groups for tensor in group.tensors):
        return _joined(groups), len(groups)
    raise several_sets(checkpoint, groups)


def _joined(groups: Sequence[StateDict]) -> StateDict:
    """One state dict of several, under the names that their keys make below what they have in common."""
    steps = takewhile(lambda keys: len(set(keys)) == 1, zip(*(group.path for group in groups), strict=False))
    around = tuple(keys[0] for keys in steps)
    tensors = [
        replace(tensor, name=".".join([*group.path[len(around) :], tensor.name]))
        for group in groups
        for tensor in group.tensors
    ]
    return replace(
        groups[0],
        path=around,
        access=(),
        tensors=tuple(tensors),
        modules=module_tree(tensors),
        others=(),
        odd_keys=tuple(key for group in groups for key in group.odd_keys),
        versions=(),
    )


def _check_mixed(names: Iterable[str]) -> None:
    """Every name has a wrapper in front, but not every one the same, and one of them could be a part's own name."""
    first = {name: name.partition(".")[0] for name in names}
    kinds = set(first.values())
    if _AMBIGUOUS in kinds and len(kinds) > 1 and kinds <= WRAPPER_SEGMENTS:
        own = next(name for name, segment in first.items() if segment == _AMBIGUOUS)
        other = next(segment for segment in first.values() if segment != _AMBIGUOUS)
        raise ExportError(
            f'Nothing was written: {own} begins with "module." and others with "{other}.": whether "module" is a '
            "wrapper or a part of the network, the names do not tell.",
            hint="Name the model it is for: a repair tells which of them it means.",
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
