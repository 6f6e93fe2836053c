"""Is the repaired state dict right? A strict load that passes proves names and shapes, and nothing about the numbers.

So more is looked at: that every tensor went to exactly one place, that what the model holds afterwards are the file's
own bytes, that running statistics are possible ones, and that the model answers something finite and varied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from inspector.architectures.types import Target, TargetKind
from inspector.checkpoint.data import is_stored_as, read_array
from inspector.checkpoint.types import Checkpoint, Shape
from inspector.errors import InspectorError
from inspector.keys.apply import apply_plan, state_of
from inspector.keys.operations import operation_of
from inspector.keys.proofs.answers import pair_of, prove_pair, prove_reference, reference_of
from inspector.keys.proofs.forward import prove_forward
from inspector.keys.proofs.own_code import prove_in_code
from inspector.keys.proofs.twins import prove_which
from inspector.keys.proofs.values import ValueTally, prove_values
from inspector.keys.report import Proof, RepairPlan, Step, Verification, used_sources
from inspector.units import counted, human_shape

# What other modules take from here.
__all__ = [
    "BytesTally",
    "Compared",
    "ValueTally",
    "prove_bijection",
    "prove_bytes",
    "prove_forward",
    "prove_names",
    "prove_strict_load",
    "prove_values",
    "tensor_bytes",
    "verify_plan",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a user gives to hold a repair against, and how to run it.

    reference: another file that loads into the target. pair: a file with an input and the output that belongs to it.
    shape: of the noise for a forward pass, with its batch; None for what the architecture is usually run at.
    folder: where a `code:` target runs, the current one if None.
    """

    reference: Checkpoint | None = None
    pair: Checkpoint | None = None
    shape: Shape | None = None
    folder: Path | None = None


def verify_plan(
    checkpoint: Checkpoint, plan: RepairPlan, target: Target, *, compared: Compared | None = None
) -> Verification:
    """Everything that can be proven about this plan here, each with what was measured.

    A plan that cannot be applied yields its reason as a failed proof; nothing is raised for that. A target that is code
    runs again, in its own process. compared: raises UsageError for files that are no reference or no pair.
    """
    given = compared or Compared()
    pair = pair_of(given.pair) if given.pair is not None else None
    reference = reference_of(given.reference, target) if given.reference is not None else None
    proofs = [prove_bijection(checkpoint, plan, target)]
    try:
        state = apply_plan(checkpoint, plan, spec=target.spec)
    except InspectorError as error:
        return Verification(proofs=(*proofs, Proof(id="applies", says=str(error), passed=False)))
    own = (
        prove_in_code(state, target, folder=given.folder, shape=given.shape, pair=pair, reference=reference)
        if target.kind is TargetKind.CODE and not plan.partial
        else []
    )
    if own:
        checked = [prove_bytes(checkpoint, plan, state), prove_values(state, plan.steps)]
        return Verification(proofs=(*proofs, own[0], *checked, *own[1:]))
    model, strict = prove_strict_load(state, target, plan.missing if plan.partial else ())
    held = dict(model.state_dict()) if model is not None and strict.passed else state
    proofs += [strict, prove_bytes(checkpoint, plan, held), prove_values(state, plan.steps)]
    ready = model if strict.passed and not plan.partial else None
    proofs.append(_not_whole(plan) if plan.partial else prove_forward(ready, target, state, shape=given.shape))
    proofs += [prove_pair(ready, pair)] if pair is not None else []
    # Last, since the model then holds the reference's tensors.
    proofs += [prove_reference(ready, target, state, reference, shape=given.shape)] if reference is not None else []
    which = prove_which(checkpoint, target)
    proofs += [which] if which is not None else []
    return Verification(proofs=tuple(proofs))


def _not_whole(plan: RepairPlan) -> Proof:
    says = f"{counted(len(plan.missing), 'place')} stay untrained: an answer of the model would mean nothing yet."
    return Proof(id="forward", says=says, passed=None)


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


def prove_strict_load(
    state: Mapping[str, Tensor], target: Target, missing: Collection[str] = ()
) -> tuple[nn.Module | None, Proof]:
    """Load into the built model where there is one; else compare names and shapes as a strict load does.

    missing: of a part, exactly what a load with strict=False has to report, and nothing else.
    """
    if target.spec is None:
        return None, prove_names({name: tuple(tensor.shape) for name, tensor in state.items()}, target, missing)
    from inspector.architectures.build import build_model

    try:
        model = build_model(target.spec)
    except InspectorError as error:
        # What the index lists of the model is what a strict load compares, whether or not its library is here.
        proof = prove_names({name: tuple(tensor.shape) for name, tensor in state.items()}, target, missing)
        return None, replace(proof, says=f"{proof.says} It could not be built here: {error.says}")
    try:
        found = model.load_state_dict(state, strict=not missing)
    except (RuntimeError, ValueError) as error:
        return None, Proof(id="strict-load", says=str(error).splitlines()[-1].strip(), passed=False)
    if missing:
        return model, _prove_part(found.missing_keys, found.unexpected_keys, missing, state, target)
    says = f"{target.label}.load_state_dict(strict=True) accepts all {counted(len(state), 'tensor')}."
    return model, Proof(id="strict-load", says=says, passed=True)


def _prove_part(
    lacks: Collection[str],
    unexpected: Collection[str],
    missing: Collection[str],
    state: Mapping[str, Tensor],
    target: Target,
) -> Proof:
    """What load_state_dict(strict=False) reports, against the list that the plan gives."""
    if set(lacks) != set(missing) or unexpected:
        others = sorted({*unexpected, *set(lacks) ^ set(missing)})
        says = f"strict=False reports another list than the plan: {others[0]} and {len(others) - 1:,} more differ."
        return Proof(id="strict-load", says=says, passed=False)
    says = (
        f"{target.label}.load_state_dict(strict=False) loads {counted(len(state), 'tensor')}, reports nothing "
        f"unexpected and exactly the {counted(len(missing), 'tensor')} that the plan lists as missing."
    )
    return Proof(id="strict-load", says=says, passed=True)


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


def prove_bytes(checkpoint: Checkpoint, plan: RepairPlan, held: Mapping[str, Tensor]) -> Proof:
    """Each placed tensor, read by our own reader, against what the model (or the new state dict) holds."""
    tally = BytesTally(checkpoint, plan)
    for step in plan.steps:
        if step.target is not None and not tally.look(step, held[step.target].detach()):
            break
    return tally.proof()


class BytesTally:
    """`prove_bytes` one tensor after the other, so that nobody has to hold them all."""

    def __init__(self, checkpoint: Checkpoint, plan: RepairPlan) -> None:
        self._checkpoint = checkpoint
        self._infos = {t.name: t for t in state_of(checkpoint, plan).tensors}
        self._equal = self._cast = self._computed = 0
        self._wrong = ""

    def look(self, step: Step, tensor: Tensor) -> bool:
        """Compare what a step made with the file's bytes. False when they differ: the proof has failed."""
        undo = operation_of(step).undo
        if undo is None:
            self._computed += 1
            return True
        # Joined tensors are compared one by one.
        for part in undo(step, tensor):
            if part.source is None:
                if bool(part.tensor.any()):
                    self._wrong = f"{step.target} is not zero where no tensor of the file goes."
                    return False
                continue
            info = self._infos[part.source]
            dtype = getattr(torch, info.dtype)
            if part.rows is None and part.tensor.dtype is dtype:
                if not is_stored_as(self._checkpoint, info, _flat_bytes(part.tensor)):
                    return self._differs(step, part.source)
                continue
            raw = read_array(self._checkpoint, info).reshape(-1).view(np.uint8)
            if part.rows is not None:
                row = len(raw) // info.shape[0]
                raw = raw[part.rows[0] * row : part.rows[1] * row]
            if part.tensor.dtype is not dtype:
                # The model computes in another type: what it holds must be the file's numbers, cast.
                raw = _flat_bytes(torch.from_numpy(raw.copy()).view(dtype).to(part.tensor.dtype))
                self._cast += 1
            if not np.array_equal(raw, _flat_bytes(part.tensor)):
                return self._differs(step, part.source)
        self._equal += 1
        return True

    def _differs(self, step: Step, source: str) -> bool:
        self._wrong = f"{step.target} does not hold the bytes of {source}."
        return False

    def proof(self) -> Proof:
        """What all that was looked at proves."""
        if self._wrong:
            return Proof(id="bytes", says=self._wrong, passed=False)
        more = f", {self._cast:,} of them after the cast to the model's type" if self._cast else ""
        more += f"; {self._computed:,} were computed or filled and have no source bytes" if self._computed else ""
        return Proof(id="bytes", says=f"{counted(self._equal, 'tensor')} bit for bit the file's{more}.", passed=True)


def tensor_bytes(tensor: Tensor) -> bytes:
    """Row-major bytes of a CPU tensor of any dtype."""
    return _flat_bytes(tensor).tobytes()


def _flat_bytes(tensor: Tensor) -> NDArray[np.uint8]:
    """The same without a copy, where its elements lie in that order."""
    flat = tensor.detach().contiguous().reshape(-1)
    raw: NDArray[np.uint8] = flat.view(torch.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)
    return raw
