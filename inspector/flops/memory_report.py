"""What a pass holds in memory at its peak: types without torch."""

from __future__ import annotations

from dataclasses import dataclass

PRECISIONS = ("float32", "bfloat16", "float16", "float64")
OPTIMIZERS = ("sgd", "sgd-momentum", "adam", "adamw")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport:
    """Bytes held at the peak of one forward pass, or of one step of training.

    optimizer: "" for inference. at: what was running at the peak: a module's path, "the backward pass", "the
    optimizer's step". The parts are held all the time, but for gradient_nbytes, which is what all gradients take once
    the backward pass has ended; rest_nbytes is what else is there at the peak: activations, gradients, intermediates.
    """

    label: str
    input_shape: tuple[int, ...]
    optimizer: str
    precision: str
    peak_nbytes: int
    at: str
    parameter_nbytes: int
    buffer_nbytes: int
    gradient_nbytes: int
    optimizer_nbytes: int
    input_nbytes: int

    @property
    def rest_nbytes(self) -> int:
        """Activations, gradients and intermediates at the peak."""
        kept = self.parameter_nbytes + self.buffer_nbytes + self.optimizer_nbytes + self.input_nbytes
        return max(0, self.peak_nbytes - kept)
