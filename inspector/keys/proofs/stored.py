"""What is proven of a repair without a model: its places, names and bytes, in numpy alone.

The bytes that the file holds and the bytes that a step made are compared after undoing the step, never the other way:
what made a mistake would repeat it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from inspector.architectures.types import Target
from inspector.checkpoint.data import is_stored_as
from inspector.checkpoint.raw_tensor import RawTensor, read_raw
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.keys.apply import state_of
from inspector.keys.operations import operation_of
from inspector.keys.operations.entry import Part
from inspector.keys.report import Proof, RepairPlan, Step, used_sources
from inspector.units import counted, human_shape


def prove_bijection(checkpoint: Checkpoint, plan: RepairPlan, target: Target) -> Proof:
    """Every tensor of the file in exactly one step, every place of the target filled exactly once."""
    sources = used_sources(plan.steps)
    targets = [s.target for s in plan.steps if s.target is not None]
    ours = {t.name for t in state_of(checkpoint, plan).tensors}
    theirs = {t.name for t in target.tensors}
    empty = set(plan.missing) if plan.partial else set()
    right = (
        len(sources) == len(set(sources))
        and len(targets) == len(set(targets))
        and set(sources) == ours
        and set(targets) | empty == theirs
        and not set(targets) & empty
    )
    placed = sum(1 for s in plan.steps if s.source is not None and s.target is not None)
    filled, dropped = len(targets) - placed, len(sources) - placed
    if right:
        says = f"{counted(placed, 'tensor')} on as many places, none twice; {filled:,} filled, {dropped:,} left out."
        says += f" {counted(len(empty), 'place')} left empty, as asked." if empty else ""
    else:
        settled = f"{len(set(targets) & theirs):,} of {len(theirs):,} places"
        says = f"{settled} and {len(set(sources) & ours):,} of {counted(len(ours), 'tensor')} are settled."
    return Proof(id="bijection", says=says, passed=right)


def prove_names(made: Mapping[str, tuple[int, ...]], target: Target, missing: Collection[str] = ()) -> Proof:
    """What a strict load compares, without a model: the made names and shapes against the target's, less `missing`."""
    shapes = {t.name: t.shape for t in target.tensors if t.name not in missing}
    if set(made) != set(shapes):
        return Proof(id="strict-load", says="The names differ from the target's.", passed=False)
    wrong = [n for n, shape in shapes.items() if shape is not None and made[n] != shape]
    if wrong:
        ours, theirs = made[wrong[0]], shapes[wrong[0]] or ()
        says = f"{wrong[0]}: {human_shape(ours)}, the target has {human_shape(theirs)}."
        return Proof(id="strict-load", says=says, passed=False)
    unknown = sum(1 for shape in shapes.values() if shape is None)
    if unknown:
        says = f"All {len(shapes):,} names agree; the target tells no shapes, so a strict load is not proven."
        return Proof(id="strict-load", says=says, passed=None)
    says = f"All {len(shapes):,} names and shapes agree with {target.label}, which is what a strict load compares."
    says += f" {counted(len(missing), 'other')} of its names are not in it, as the plan lists." if missing else ""
    return Proof(id="strict-load", says=says, passed=True)


def prove_bytes(checkpoint: Checkpoint, plan: RepairPlan, held: Mapping[str, RawTensor]) -> Proof:
    """Each placed tensor, read by our own reader, against what the model (or the new state dict) holds."""
    tally = BytesTally(checkpoint, plan)
    for step in plan.steps:
        if step.target is not None and not tally.look(step, held[step.target]):
            break
    return tally.proof()


class BytesTally:
    """`prove_bytes` one tensor after the other, so that nobody has to hold them all."""

    def __init__(self, checkpoint: Checkpoint, plan: RepairPlan) -> None:
        self._checkpoint = checkpoint
        self._infos = {t.name: t for t in state_of(checkpoint, plan).tensors}
        self._equal = self._computed = 0
        self._cast_to: dict[str, int] = {}
        self._wrong = ""

    def look(self, step: Step, tensor: RawTensor) -> bool:
        """Compare what a step made with the file's bytes. False when they differ: the proof has failed."""
        undo = operation_of(step).undo
        if undo is None:
            self._computed += 1
            return True
        # Joined tensors are compared one by one.
        for part in undo(step, tensor):
            if part.source is None:
                if bool(part.tensor.raw_bytes.any()):
                    self._wrong = f"{step.target} is not zero where no tensor of the file goes."
                    return False
            elif not self._holds(part, self._infos[part.source]):
                self._wrong = f"{step.target} does not hold the bytes of {part.source}."
                return False
        self._equal += 1
        return True

    def _holds(self, part: Part, info: TensorInfo) -> bool:
        if part.rows is None and part.among is None and part.tensor.dtype == info.dtype:
            return is_stored_as(self._checkpoint, info, part.tensor.raw_bytes)
        source = read_raw(self._checkpoint, info)
        if part.rows is not None:
            source = source.rows(*part.rows)
        if part.among is not None:
            last = len(source.shape) - 1
            turned = source.permute((*range(last - 1), last, last - 1)) if part.turned else source
            source = turned.take(part.among)
        if source.dtype == part.tensor.dtype:
            return np.array_equal(source.raw_bytes, part.tensor.raw_bytes)
        # The model computes in another type: what it holds must be the file's numbers, cast.
        self._cast_to[part.tensor.dtype] = self._cast_to.get(part.tensor.dtype, 0) + 1
        cast = source.cast(part.tensor.dtype)
        if np.array_equal(cast.raw_bytes, part.tensor.raw_bytes):
            return True
        # No cast says which of its many patterns a NaN gets.
        return np.array_equal(cast.numbers.reshape(-1), part.tensor.numbers.reshape(-1), equal_nan=True)

    def proof(self) -> Proof:
        """What all that was looked at proves."""
        if self._wrong:
            return Proof(id="bytes", says=self._wrong, passed=False)
        equal = f"{counted(self._equal, 'tensor')} bit for bit the file's"
        if self._cast_to:
            casts = " and ".join(f"{n:,} of them after the cast to {dtype}" for dtype, n in self._cast_to.items())
            equal = f"{counted(self._equal, 'tensor')} equal to the file's, {casts}"
        more = f"; {self._computed:,} were computed or filled and have no source bytes" if self._computed else ""
        return Proof(id="bytes", says=f"{equal}{more}.", passed=True)
