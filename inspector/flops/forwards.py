"""Memory and time of a forward pass of an architecture that can be built, as `count.count_costs` counts its work."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from inspector.architectures.build import build_model
from inspector.architectures.types import ArchitectureSpec, Given
from inspector.flops.blank import to_meta
from inspector.flops.count import inputs_of
from inspector.flops.memory import peak_memory
from inspector.flops.memory_report import MemoryReport
from inspector.flops.timing import time_modules
from inspector.flops.timing_report import TimingReport
from inspector.forward.inputs import blank_of, by_place
from inspector.progress import Progress, silent


def memory_of(
    spec: ArchitectureSpec,
    input_shape: tuple[int, ...] | None = None,
    *,
    batch: int = 1,
    optimizer: str = "",
    precision: str = "float32",
) -> MemoryReport:
    """Peak memory of one forward pass, or of a step of training with an optimizer. Raises as both do."""
    inputs = inputs_of(spec, input_shape, batch=batch)
    model = build_model(spec, device="meta")
    return memory_given(model, inputs, label=spec.label, optimizer=optimizer, precision=precision)


def memory_given(
    model: nn.Module, inputs: Sequence[Given], *, label: str, optimizer: str = "", precision: str = "float32"
) -> MemoryReport:
    """The same for a module in hand, which is left as it is: a copy without values is run."""
    args, kwargs = by_place([blank_of(given) for given in inputs], tuple(inputs))
    blank = to_meta(model, label=label)
    return peak_memory(blank, args, kwargs, label=label, optimizer=optimizer, precision=precision)


def time_of(
    spec: ArchitectureSpec,
    input_shape: tuple[int, ...] | None = None,
    *,
    batch: int = 1,
    progress: Progress = silent,
) -> TimingReport:
    """Seconds of each module on this machine, with weights as they are made. Raises as `time_modules`."""
    inputs = inputs_of(spec, input_shape, batch=batch)
    model = build_model(spec, device="cpu")
    return time_modules(model, inputs, label=spec.label, progress=progress)
