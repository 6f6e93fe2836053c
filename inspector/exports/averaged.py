"""Which averaged weights (EMA, SWA) a file holds: a state dict of their own, or a twin beside the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

from inspector.checkpoint.nested import averaged_prefixes
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole
from inspector.errors import UsageError
from inspector.units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Averaged:
    """prefix: under which of the state dict's names they are ("ema_model"), "" for all of it."""

    state: StateDict
    prefix: str = ""

    @property
    def alone(self) -> StateDict:
        """The averaged weights by themselves, under the names of the weights they are a twin of."""
        if not self.prefix:
            return self.state
        start = f"{self.prefix}."
        tensors = tuple(replace(t, name=t.name[len(start) :]) for t in self.state.tensors if t.name.startswith(start))
        versions = [(path.partition(start)[2], v) for path, v in self.state.versions if path.startswith(start)]
        return replace(self.state, tensors=tensors, versions=tuple(versions))


def find_averaged(checkpoint: Checkpoint) -> Averaged:
    """The one set of averaged weights in the file. Raises UsageError, with what there is, when it is not just one."""
    states = [s for s in checkpoint.state_dicts if s.role is StateRole.EMA and s.tensors]
    found = [Averaged(state=state) for state in states]
    weights = checkpoint.weights
    if not found and weights is not None:
        found = [Averaged(state=weights, prefix=prefix) for prefix in averaged_prefixes(weights)]
    if len(found) == 1:
        return found[0]
    name = checkpoint.origin.name
    if not found:
        have = ", ".join(s.label for s in checkpoint.state_dicts) or "no state dict"
        raise UsageError(f"{name} holds no averaged weights that its names tell.", hint=f"It has: {have}.")
    labels = ", ".join(each.prefix or each.state.label for each in found)
    raise UsageError(f"{name} holds {counted(len(found), 'set')} of averaged weights: {labels}.", hint="Pass --state.")
