"""The randomisation test: a map that does not change when the model forgets what it learned, did not show it.

Source: Adebayo and others, "Sanity Checks for Saliency Maps", NeurIPS 2018 (arXiv 1810.03292), section 3: layers are
randomised from the answer down, one after the other, and each time the map is compared with the trained model's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import borrowed, unwrap
from inspector.cam.trust.correlation import rank_correlation
from inspector.progress import Progress, silent

MOST_STAGES = 10
# Numbers that are drawn between two chances to stop.
_DRAWN = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """down_to: the last module that was randomised. modules: how many so far. correlation: Spearman's, of the map with
    the trained model's; NaN where a map is constant."""

    down_to: str
    modules: int
    correlation: float


def randomisation(
    model: nn.Module,
    remap: Callable[[nn.Module], Tensor],
    *,
    most_stages: int = MOST_STAGES,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Stage, ...]:
    """Correlation of the map while the model's weights are replaced, from the answer down, in a copy.

    remap: a model to its map (h, w), before ReLU, with the same picture, class, layer and method. Each weight tensor is
    replaced by normal numbers of its own mean and deviation, so that activations keep their size. Modules are ordered
    as the forward reaches them, not as the class lists them. Where there are more modules than stages, several are
    replaced at once. The model is left as it was.
    """
    bare = unwrap(model)
    with borrowed(bare):
        twin = copy.deepcopy(bare)
    names = _with_weights(twin)
    count = min(most_stages, len(names))
    progress(0, count + 1, "forgetting what was learned")
    with _watched(twin) as reached:
        trained = remap(twin)
    # Python's sort is stable: what is never called by itself stays where its parent is.
    names = sorted(names, key=lambda name: _order(name, reached))[::-1]
    generators: dict[torch.device, torch.Generator] = {}
    stages, done = [], 0
    for number in range(count):

        def pause(number: int = number) -> None:
            progress(number + 1, count + 1, "forgetting what was learned")

        pause()
        until = round((number + 1) * len(names) / count)
        for name in names[done:until]:
            for parameter in twin.get_submodule(name).parameters(recurse=False):
                if not parameter.is_floating_point() or not parameter.numel():
                    continue
                device = parameter.device
                if device not in generators:
                    generators[device] = torch.Generator(device).manual_seed(seed)
                _forget(parameter, generators[device], pause)
        done = until
        stages.append(Stage(down_to=names[done - 1], modules=done, correlation=rank_correlation(trained, remap(twin))))
    return tuple(stages)


def stage_count(model: nn.Module, most_stages: int = MOST_STAGES) -> int:
    """How many stages the test has."""
    return min(most_stages, len(_with_weights(model)))


def _with_weights(model: nn.Module) -> list[str]:
    named = model.named_modules()
    return [name for name, module in named if next(module.parameters(recurse=False), None) is not None]


@contextmanager
def _watched(model: nn.Module) -> Iterator[dict[str, int]]:
    """name -> when the forward first reached it."""
    reached: dict[str, int] = {}

    def watch(name: str) -> Callable[[nn.Module, object], None]:
        def note(_module: nn.Module, _args: object) -> None:
            reached.setdefault(name, len(reached))

        return note

    handles = [module.register_forward_pre_hook(watch(name)) for name, module in model.named_modules()]
    try:
        yield reached
    finally:
        for handle in handles:
            handle.remove()


def _order(name: str, reached: dict[str, int]) -> int:
    """When it was reached, or the nearest one around it: a projection inside attention is used without being called."""
    while name and name not in reached:
        name = name.rpartition(".")[0]
    return reached.get(name, 0)


def _forget(parameter: Tensor, generator: torch.Generator, pause: Callable[[], None]) -> None:
    """In place, without a copy: the largest tensors are half a model."""
    with torch.no_grad():
        values = parameter.detach().float() if parameter.dtype != torch.float64 else parameter.detach()
        values = values if bool(torch.isfinite(values).all()) else values[torch.isfinite(values)]
        spread, mean = (float(n) for n in torch.std_mean(values, correction=0)) if values.numel() else (0.0, 0.0)
        flat = parameter.detach().view(-1) if parameter.is_contiguous() else parameter.detach()[None]
        for start in range(0, flat.shape[0], _DRAWN):
            pause()
            flat[start : start + _DRAWN].normal_(mean, spread, generator=generator)
