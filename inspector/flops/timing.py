"""How long does each module take? One forward pass, repeated with random numbers on this machine, in eval mode."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from inspector.architectures.types import Given
from inspector.errors import ModelError
from inspector.flops.refusals import first_line
from inspector.flops.timing_report import ModuleTime, TimingReport
from inspector.forward.inputs import by_place, filled
from inspector.progress import Progress, silent

WARM_UP, RUNS = 3, 10


def time_modules(
    model: nn.Module, inputs: Sequence[Given], *, label: str, runs: int = RUNS, progress: Progress = silent
) -> TimingReport:
    """Median and spread of each module's seconds over `runs` passes after a warm-up; the model's weights are used.

    The whole pass is timed apart, without the hooks that time its modules. Raises ModelError where it does not run.
    """
    tensors = [filled(given, torch.Generator().manual_seed(0)) for given in inputs]
    args, kwargs = by_place(tensors, tuple(inputs))
    modes = {module: module.training for module in model.modules()}
    taken: dict[str, list[float]] = {}
    began: dict[int, list[float]] = {}
    now: dict[str, float] = {}

    def before(path: str) -> Callable[..., None]:
        return lambda module, *_: began.setdefault(id(module), []).append(time.perf_counter())

    def after(path: str) -> Callable[..., None]:
        def note(module: nn.Module, *_: Any) -> None:
            now[path] = now.get(path, 0.0) + time.perf_counter() - began[id(module)].pop()

        return note

    whole: list[float] = []
    hooks: list[Any] = []
    try:
        with torch.inference_mode():
            model.eval()
            for n in range(WARM_UP + runs):
                progress(n, WARM_UP + 2 * runs, "the whole pass")
                start = time.perf_counter()
                model(*args, **kwargs)
                whole.append(time.perf_counter() - start)
            for path, module in model.named_modules():
                if path:
                    hooks.append(module.register_forward_pre_hook(before(path)))
                    hooks.append(module.register_forward_hook(after(path)))
            for n in range(runs):
                progress(WARM_UP + runs + n, WARM_UP + 2 * runs, "each module")
                now.clear()
                model(*args, **kwargs)
                for path, seconds in now.items():
                    taken.setdefault(path, []).append(seconds)
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError, NotImplementedError) as error:
        raise ModelError(f"{label} could not be timed: {first_line(error)}") from error
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in modes.items():
            module.training = training
    whole = whole[WARM_UP:]
    kinds = {path: type(module).__name__ for path, module in model.named_modules()}
    return TimingReport(
        target=label,
        input_shape=inputs[0].shape,
        seconds=statistics.median(whole),
        spread=_spread(whole),
        runs=runs,
        warm_up=WARM_UP,
        threads=torch.get_num_threads(),
        device="cpu",
        tf32=bool(torch.backends.cuda.matmul.allow_tf32),
        cudnn_benchmark=bool(torch.backends.cudnn.benchmark),
        modules=tuple(
            ModuleTime(path=path, kind=kinds[path], seconds=statistics.median(found), spread=_spread(found))
            for path, found in taken.items()
        ),
    )


def _spread(values: Sequence[float]) -> float:
    """Between the quartiles, in seconds."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return high - low
