"""What works on raw tensors, asked with torch's: the tests are written with what torch itself makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.checkpoint.torch_bridge import raw_of, tensor_of
from inspector.checkpoint.types import Checkpoint
from inspector.keys import apply
from inspector.keys.operations import spread_channels as spreading
from inspector.keys.proofs import constants, stored, values
from inspector.keys.report import Proof, RepairPlan, Step

__all__ = ["judge_constant", "make_one", "prove_bytes", "prove_values", "raw_state", "spread_channels"]


def raw_state(state: Mapping[str, Tensor]) -> dict[str, RawTensor]:
    return {name: raw_of(tensor) for name, tensor in state.items()}


def judge_constant(name: str, tensor: Tensor) -> tuple[str, str]:
    return constants.judge_constant(name, raw_of(tensor))


def prove_values(state: Mapping[str, Tensor], steps: Sequence[Step] = ()) -> Proof:
    return values.prove_values(raw_state(state), steps)


def prove_bytes(checkpoint: Checkpoint, plan: RepairPlan, held: Mapping[str, Tensor]) -> Proof:
    return stored.prove_bytes(checkpoint, plan, raw_state(held))


def make_one(step: Step, load: Callable[[str], Tensor]) -> Tensor:
    return tensor_of(apply.make_one(step, lambda name: raw_of(load(name))))


def spread_channels(weight: Tensor, channels: int) -> Tensor:
    return tensor_of(spreading.spread_channels(raw_of(weight), channels))
