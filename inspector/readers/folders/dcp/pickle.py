"""The pickle of a .metadata, followed in a third of the memory: it is one long list of three small classes.

What those classes keep is taken out of their states at once, and the states are let go of. Whatever is not as torch
writes it goes the ordinary way (`unpickle`), where nothing is let go of.
"""

from __future__ import annotations

from functools import partial

from inspector.checkpoint.source import ByteSource
from inspector.limits import Limits
from inspector.readers.unpickle.machine.arguments import sizes_of
from inspector.readers.unpickle.machine.machine import MAPPING_NBYTES, PAIR_NBYTES, Machine, Semantics
from inspector.readers.unpickle.machine.opcodes import TABLE
from inspector.readers.unpickle.meanings.table import MEANINGS, build
from inspector.readers.unpickle.stand_ins import NOT_UNDERSTOOD, Mapping, Meaning
from inspector.readers.unpickle.unpickling import Unpickled, unpickle

_BUILD = b"b"[0]
_MOST_BACK = 48
# What the machine counts for the result of a known call, and what an Item takes instead (bytes).
_RESULT_NBYTES, _ITEM_NBYTES = 240, 160
_CLASSES = {
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata": ("offsets", "sizes"),
    "torch.distributed.checkpoint.metadata.MetadataIndex": ("fqn", "offset"),
    "torch.distributed.checkpoint.filesystem._StorageInfo": (
        "relative_path",
        "offset",
        "length",
        "transform_descriptors",
    ),
}
_GONE = "(a state that was taken apart)"


class Item:
    """An object of one of these classes: its attributes by name, None for those it has not."""

    __slots__ = ("names", "values")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.values: tuple[object, ...] | None = None


class _Compact:
    """The meanings that need to know their machine."""

    def __init__(self) -> None:
        self.machine: Machine | None = None

    def save(self, nbytes: int) -> None:
        if self.machine is not None:
            self.machine.spent -= nbytes

    def item(self, names: tuple[str, ...], args: tuple[object, ...]) -> object:
        if args:
            return NOT_UNDERSTOOD
        self.save(_RESULT_NBYTES - _ITEM_NBYTES)
        return Item(names)

    def size(self, args: tuple[object, ...]) -> object:
        if len(args) != 1 or type(args[0]) is not tuple or sizes_of(args[0]) is None:
            return NOT_UNDERSTOOD
        self.save(_RESULT_NBYTES)
        return args[0]


def _build(m: Machine) -> None:
    state, target = m.stack[-1], m.stack[-2]
    if type(target) is not Item or target.values is not None or type(state) is not Mapping or len(state.pairs) > 8:
        TABLE[_BUILD](m)
        return
    m.stack.pop()
    found = {key: value for key, value in state.pairs if type(key) is str}
    target.values = tuple(found.get(name) for name in target.names)
    for at in range(len(m.memo) - 1, max(-1, len(m.memo) - _MOST_BACK), -1):
        if m.memo[at] is state:
            m.memo[at] = _GONE  # Should the file recall it: that is no mapping, and goes the ordinary way.
            m.spent -= MAPPING_NBYTES + PAIR_NBYTES * len(state.pairs)
            break


_TABLE = (*TABLE[:_BUILD], _build, *TABLE[_BUILD + 1 :])


def follow(source: ByteSource, limits: Limits) -> Unpickled:
    """Follow a .metadata. Like `unpickle`, it raises nothing for what the stream contains."""
    compact = _Compact()
    meanings: dict[str, Meaning] = {
        **MEANINGS,
        "torch.Size": compact.size,
        **{cls: partial(compact.item, names) for cls, names in _CLASSES.items()},
    }
    machine = Machine(source, 0, source.size, limits=limits, semantics=Semantics(meanings=meanings, build=build))
    compact.machine = machine
    outcome = machine.run(_TABLE)
    if outcome.broken or outcome.oddities or machine.suspects or machine.more_suspects:
        return unpickle(source, 0, source.size, limits)
    limits.spend(outcome.nbytes)  # Given back in checkpoint_from_pickle.
    return Unpickled(outcome=outcome)
