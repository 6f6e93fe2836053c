"""One pickle of a file followed to its end, with those inside its constants. Shared by every reader of pickles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from inspector.checkpoint.source import BufferSource, ByteSource
from inspector.limits import Limits
from inspector.readers.unpickle.machine.machine import Machine, Outcome, Persistent, Semantics
from inspector.readers.unpickle.machine.opcodes import TABLE
from inspector.readers.unpickle.meanings.arrays import MEMMAP
from inspector.readers.unpickle.meanings.joblib_arrays import WrappedArrays
from inspector.readers.unpickle.meanings.persistent import torch_persistent
from inspector.readers.unpickle.meanings.table import MEANINGS, build
from inspector.readers.unpickle.nested.nested_pickles import (
    LOADER,
    MOST_LEVELS,
    Followed,
    Inside,
    Loader,
    Stretch,
    look_into,
)
from inspector.readers.unpickle.stand_ins import Meaning, StorageRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Nesting:
    """Where a pickle lies.

    in_file: the source is the file itself, so long constants can stay in it. level: how many pickles it lies in.
    prefix: goes before the keys of its storages.
    """

    in_file: bool = True
    level: int = 0
    prefix: str = ""


_OUTERMOST = Nesting()


@dataclass(slots=True, kw_only=True)
class Unpickled:
    """One pickle followed: its outcome, the storages it names, the module sources it carries, and what is inside its
    constants."""

    outcome: Outcome
    storages: dict[str, StorageRef] = field(default_factory=dict)
    sources: list[tuple[str, str]] = field(default_factory=list)
    inside: Inside = field(default_factory=Inside)


# With these a file could call what it names where that is not seen.
_WRAPPERS = frozenset(
    {
        *("functools.partial", "functools.reduce", "builtins.map", "builtins.getattr"),
        *("copyreg.__newobj__", "copyreg.__newobj_ex__"),
    }
)


def unpickle(
    source: ByteSource,
    start: int,
    stop: int,
    limits: Limits,
    *,
    nesting: Nesting = _OUTERMOST,
    persistent: Persistent | None = None,
    joblib: bool = False,
) -> Unpickled:
    """Follow one pickle, and those inside its constants.

    persistent: what stands for a persistent id, torch.save's if None. joblib: whether joblib.load may be what opens it,
    which reads arrays between the opcodes.
    """
    in_file, level, prefix = nesting.in_file, nesting.level, nesting.prefix
    storages: dict[str, StorageRef] = {}
    sources: list[tuple[str, str]] = []
    inside = Inside()

    def follow(stretch: Stretch, at: int, inner_prefix: str) -> Followed:
        deeper = Nesting(in_file=in_file and stretch.inline is None, level=level + 1, prefix=inner_prefix)
        found = unpickle(stretch.source, at, stretch.stop, limits, nesting=deeper)
        inside.add(found.inside)
        return Followed(outcome=found.outcome, storages=found.storages)

    def follow_objects(at: int) -> Outcome:
        found = unpickle(source, at, stop, limits, nesting=replace(nesting, level=level + 1))
        inside.outcomes.append((f"the array of objects at byte {at:,}", found.outcome))
        inside.add(found.inside)
        return found.outcome

    loader = Loader(source, limits, inside, follow, in_file=in_file, prefix=prefix)
    arrays = WrappedArrays(follow=follow_objects) if joblib else None
    meanings: dict[str, Meaning] = {**MEANINGS, **(arrays.meanings if arrays else {})}
    if level < MOST_LEVELS:
        meanings[LOADER] = loader
    machine = Machine(
        source,
        start,
        stop,
        limits=limits,
        semantics=Semantics(
            meanings=meanings,
            build=build,
            persistent=persistent or torch_persistent(storages, sources, prefix),
            replaced=arrays,
        ),
        # Where the source is no file, nobody could find a constant again that was left in it.
        keep_below=4096 if in_file else limits.pickle_nbytes + 1,
    )
    loader.suspects = machine.suspects
    outcome = machine.run(TABLE)
    limits.spend(outcome.nbytes)  # Given back once its outline is made, in checkpoint_from_pickle.
    _try_suspects(machine, loader, inside, level)
    if arrays is not None:
        inside.outcomes += arrays.astray
    _count_followed(outcome, Counter({LOADER: inside.followed, **(arrays.read if arrays else {})}))
    return Unpickled(outcome=outcome, storages=storages, sources=sources, inside=inside)


def _try_suspects(machine: Machine, loader: Loader, inside: Inside, level: int) -> None:
    """Look into the constants that may be pickles, as deep as that is done."""
    if level < MOST_LEVELS:
        look_into(loader, machine.suspects, inside)
    else:
        inside.left_out += len(machine.suspects)
    inside.left_out += machine.more_suspects


def _count_followed(outcome: Outcome, followed: Mapping[str, int]) -> None:
    """Note how many calls of each name were followed. followed: by name."""
    wrapped = any(f"{u.module}.{u.name}" in _WRAPPERS for u in outcome.uses.values())
    for use in outcome.uses.values():
        if f"{use.module}.{use.name}" in followed:
            use.followed = followed[f"{use.module}.{use.name}"]
        elif f"{use.module}.{use.name}" != MEMMAP:
            continue
        use.followed = 0 if wrapped else use.followed


def unpickle_bytes(data: bytes, limits: Limits) -> Unpickled:
    """The same for a pickle that had to be inflated."""
    return unpickle(BufferSource(data), 0, len(data), limits, nesting=Nesting(in_file=False))
