"""What was measured of a forward pass's time: types without torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleTime:
    """Seconds of one module with everything below it, over all its calls in one pass: median, and between quartiles."""

    path: str
    kind: str
    seconds: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingReport:
    """seconds, spread: of whole passes, timed without the hooks that time the modules. modules: as they first ended."""

    target: str
    input_shape: tuple[int, ...]
    seconds: float
    spread: float
    runs: int
    warm_up: int
    threads: int
    device: str
    tf32: bool
    cudnn_benchmark: bool
    modules: tuple[ModuleTime, ...]

    @property
    def conditions(self) -> str:
        """What the figures hold for."""
        return (
            f"{self.device.upper()}, {self.threads} {'thread' if self.threads == 1 else 'threads'}, float32, median of "
            f"{self.runs} passes after {self.warm_up}; TF32 {'on' if self.tf32 else 'off'}, cuDNN's benchmark "
            f"{'on' if self.cudnn_benchmark else 'off'}"
        )
