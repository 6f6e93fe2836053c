"""Which parameter an entry of an optimizer's state is, where its order proves it; else why that is not told.

An optimizer numbers its parameters and keeps no names: "state.3.exp_avg" says nothing to whoever reads a comparison.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from inspector.checkpoint.types import Checkpoint, StateDict, StateRole
from inspector.keys.optimizer.map import map_optimizers

_ENTRY = re.compile(r"state\.(.+)\.[^.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryNames:
    """of: a number of the optimizer's, as it is written, -> the parameter of the weights. why_not: a clause without a
    full stop, "" where they are told."""

    of: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""

    def name(self, tensor: str) -> str:
        """Of "state.3.exp_avg" the parameter; "" where that is not told, or the entry is called by its name itself."""
        found = _ENTRY.fullmatch(tensor)
        name = self.of.get(found[1], "") if found else ""
        return "" if found and name == found[1] else name


def entry_names(checkpoint: Checkpoint, optimizer: StateDict | None) -> EntryNames:
    """For one state dict of the file; nothing, and no reason, for one that is no optimizer's. Reads headers alone."""
    if optimizer is None or optimizer.role is not StateRole.OPTIMIZER:
        return EntryNames()
    if checkpoint.weights is None:
        return EntryNames(why_not="the file holds no weights that its parameters could be")
    found = next((one for one in map_optimizers(checkpoint, checkpoint.weights) if one.path == optimizer.path), None)
    if found is None or found.refusal:
        return EntryNames(why_not=found.refusal if found is not None else "nothing in it is like an optimizer's state")
    return EntryNames(of={key: name for one in found.groups for key, name in zip(one.keys, one.names, strict=True)})


def agreed(a: EntryNames, b: EntryNames, tensor: str) -> str:
    """What both files call the parameter of an entry; "" where one tells another, or none does."""
    names = {name for name in (a.name(tensor), b.name(tensor)) if name}
    return names.pop() if len(names) == 1 else ""
