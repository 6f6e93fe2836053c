"""What one forward pass costs, per module: types without torch.

Convention: MACs are the multiply-adds of convolutions and matrix products (attention included), FLOPs = 2 x MACs.
Element-wise work (norms, activations, softmax, pooling) is in neither: it has a column of its own, one operation for
each element of the largest tensor that an operator reads or makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.flops.memory_report import MemoryReport
from inspector.flops.timing_report import TimingReport
from inspector.short_repr import short_repr


class Coverage(StrEnum):
    """How much of what a column is about it holds."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnState:
    """How far a column of the bill can be relied on. why: what it lacks, "" where it is complete."""

    column: str
    coverage: Coverage
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One tensor that goes in or comes out. dtype: as torch names it ("float32")."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleCost:
    """One module over all its calls in the forward pass, with everything below it.

    input_shape, output_shape: of the first tensor in and out of its first call, with the batch dimension; None without
    a tensor. inputs, outputs: all of them. macs and the like: including children; own_*: outside them, so that own_*
    of all modules add up to the total. calls: how often it ran, 0 for a module that holds parameters and never ran.
    order: when it was first called, from 0. settings: what its layer is set to ("7x7, stride 2").
    own_parameters: those held by itself that no earlier row holds (a shared one counts once); shared: those that an
    earlier row has. frozen: of own_parameters those that take no gradient. nbytes: of all memory traffic, as an
    unfused run has it. receptive_field: of the first output in pixels of the picture, None where it is not determined.
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
    order: int = 0
    settings: str = ""
    inputs: tuple[Operand, ...] = ()
    outputs: tuple[Operand, ...] = ()
    elementwise: int = 0
    own_elementwise: int = 0
    own_parameters: int = 0
    shared_parameters: int = 0
    frozen_parameters: int = 0
    own_buffers: int = 0
    output_nbytes: int = 0
    read_nbytes: int = 0
    own_read_nbytes: int = 0
    written_nbytes: int = 0
    own_written_nbytes: int = 0
    receptive_field: tuple[int, ...] | None = None

    @property
    def flops(self) -> int:
        """2 x MACs."""
        return 2 * self.macs

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte of memory traffic, None without traffic."""
        moved = self.read_nbytes + self.written_nbytes
        return self.flops / moved if moved else None


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
    modules: in call order, the model first, those that never ran last.
    uncounted: (operator, calls) that do arithmetic but have no formula here, so that macs is a lower bound if any.
    other_operations: (operator, calls) of element-wise work, by convention not in the MACs.
    activation_nbytes: sum of all module outputs at leaf level.
    input_assumed: what the input's shape rests on where nobody states it, "" where somebody does.
    input_nbytes, parameter_nbytes, buffer_nbytes: each tensor once. trainable: of the parameters, those that take a
    gradient. einsums: (equation, order in which it was contracted, calls). values: the numbers that it ran with: ""
    for none (on the meta device), otherwise what they were. whose: of a file that holds more or less than what was
    counted, a sentence on whose costs these are; "" where they are its own. memory, timing: where they were asked for.
    """

    __repr__ = short_repr

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
    inputs: tuple[Operand, ...] = ()
    elementwise: int = 0
    input_nbytes: int = 0
    parameter_nbytes: int = 0
    buffers: int = 0
    buffer_nbytes: int = 0
    trainable: int = 0
    read_nbytes: int = 0
    written_nbytes: int = 0
    columns: tuple[ColumnState, ...] = ()
    einsums: tuple[tuple[str, str, int], ...] = ()
    values: str = ""
    memory: MemoryReport | None = None
    timing: TimingReport | None = None
    whose: str = ""

    @property
    def flops(self) -> int:
        """2 x MACs."""
        return 2 * self.macs

    @property
    def forward_backward_nbytes(self) -> int:
        """Module outputs at leaf level and a gradient for each: torchsummary's "forward/backward pass size"."""
        return 2 * self.activation_nbytes

    @property
    def total_nbytes(self) -> int:
        """Input, forward/backward pass and parameters: torchsummary's "estimated total size"."""
        return self.input_nbytes + self.forward_backward_nbytes + self.parameter_nbytes

    def coverage(self, column: str) -> ColumnState | None:
        """How far that column can be relied on."""
        return next((state for state in self.columns if state.column == column), None)
