"""The randomisation test: a map that does not change when the model forgets what it learned, did not show it.

Source: Adebayo and others, "Sanity Checks for Saliency Maps", NeurIPS 2018 (arXiv 1810.03292), section 3: layers are
randomised from the answer down, one after the other, and each time the map is compared with the trained model's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.cam.capture import borrowed, unwrap
from inspector.cam.trust.agreement import rank_correlation
from inspector.progress import Progress, silent

MOST_STAGES = 10


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
    replaced by normal numbers of its own mean and deviation, so that activations keep their size. Where there are more
    modules than stages, several are replaced at once. The model is left as it was.
    """
    bare = unwrap(model)
    with borrowed(bare):
        twin = copy.deepcopy(bare)
    trained = remap(twin)
    names = [name for name, module in twin.named_modules() if next(module.parameters(recurse=False), None) is not None]
    names.reverse()
    count = min(most_stages, len(names))
    generator = torch.Generator().manual_seed(seed)
    stages, done = [], 0
    for number in range(count):
        progress(number, count, "forgetting what was learned")
        until = round((number + 1) * len(names) / count)
        for name in names[done:until]:
            _forget(twin.get_submodule(name), generator)
        done = until
        stages.append(Stage(down_to=names[done - 1], modules=done, correlation=rank_correlation(trained, remap(twin))))
    return tuple(stages)


def _forget(module: nn.Module, generator: torch.Generator) -> None:
    with torch.no_grad():
        for parameter in module.parameters(recurse=False):
            if not parameter.is_floating_point():
                continue
            values = parameter.double()
            spread = float(values.std(correction=0))
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(values.device)
            parameter.copy_((values.mean() + spread * noise).to(parameter.dtype))
