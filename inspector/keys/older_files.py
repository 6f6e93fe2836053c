"""What `load_state_dict` itself makes good in files of an older torch, so that a strict load passes.

Source: torch/nn/modules/batchnorm.py (_NormBase._load_from_state_dict: a batch norm of a version before 2, or of none,
takes its counter from the model) and torch/nn/modules/module.py (_load_from_state_dict: one element for a number, as
torch 0.3 saved it). Both have been so since torch 0.4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspector.architectures.types import Target
from inspector.checkpoint.types import StateDict
from inspector.units import counted

_COUNTER, _MEAN = "num_batches_tracked", "running_mean"
# With which version of a batch norm the counter came.
_COUNTED_SINCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeGood:
    """counters: names that the file lacks and the model keeps. numbers: names of one element for a number."""

    counters: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """A clause without a full stop, "" for nothing."""
        parts = []
        if self.counters:
            stays = "stays as the model has it" if len(self.counters) == 1 else "stay as the model has them"
            parts.append(f"{len(self.counters):,} {_COUNTER} that the file lacks {stays}")
        if self.numbers:
            verb = "is" if len(self.numbers) == 1 else "are"
            parts.append(f"{counted(len(self.numbers), 'tensor')} of one element {verb} taken for a number")
        return ", ".join(parts)


def made_good(
    state: StateDict,
    target: Target,
    missing: Sequence[str],
    reshaped: Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]],
) -> MadeGood | None:
    """missing, reshaped: as of a `KeyReport`. None where anything else is missing or of another shape."""
    shapes = {tensor.name: tensor.shape for tensor in target.tensors}
    versions = dict(state.versions)
    there = set(state.others)  # Something that is no tensor takes the place.
    if all(name not in there and _stays(name, shapes, versions) for name in missing) and all(
        ours == (1,) and theirs == () for _, ours, theirs in reshaped
    ):
        return MadeGood(counters=tuple(missing), numbers=tuple(name for name, _, _ in reshaped))
    return None


def _stays(name: str, shapes: Mapping[str, tuple[int, ...] | None], versions: Mapping[str, int]) -> bool:
    """Whether it is the counter of a batch norm whose version the file does not tell, or tells as an old one."""
    module, _, last = name.rpartition(".")
    around = f"{module}." if module else ""
    is_norm = last == _COUNTER and not shapes[name] and f"{around}{_MEAN}" in shapes
    return is_norm and versions.get(module, 0) < _COUNTED_SINCE
