"""Multiply-accumulates per module, from one forward on the meta device.

Convention: MACs are the multiply-adds of convolutions and matrix products (attention included); FLOPs = 2 x MACs.
Element-wise work (norms, activations, softmax, pooling) is not in them; it is listed as `other_operations`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleCost:
    """One module call of the forward pass, with everything below it.

    input_shape, output_shape: of the first tensor in and out, with the batch dimension; None without a tensor.
    macs: including children; own_macs: outside them. calls: how often the module ran.
    """

    path: str
    depth: int
    kind: str
    input_shape: tuple[int, ...] | None
    output_shape: tuple[int, ...] | None
    macs: int
    own_macs: int
    parameters: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondOpinion:
    """Another tool's number beside ours, or why it has none. note: what that tool counts otherwise."""

    tool: str
    macs: int | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """The cost of one forward pass.

    target: what was built. input_shape: of the first input, (batch, channels, height, width) or (batch, tokens).
    modules: in call order, the model first.
    uncounted: (operator, calls) that do arithmetic but have no formula here, so that macs is a lower bound if any.
    other_operations: (operator, calls) of element-wise work, by convention not in the MACs.
    activation_nbytes: sum of all module outputs at leaf level, float32.
    input_assumed: what the input's shape rests on where nobody states it, "" where somebody does.
    """

    target: str
    input_shape: tuple[int, ...]
    modules: tuple[ModuleCost, ...]
    macs: int
    parameters: int
    uncounted: tuple[tuple[str, int], ...]
    other_operations: tuple[tuple[str, int], ...]
    activation_nbytes: int
    second_opinions: tuple[SecondOpinion, ...] = ()
    input_assumed: str = ""

    @property
    def flops(self) -> int:
        """2 x MACs."""
        return 2 * self.macs
