"""State dicts of many small tensors, well and sick, of all initialisers and types, by seed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

State = dict[str, torch.Tensor]
Drawn = np.random.Generator


def small_tensors(seed: int, modules: int = 60) -> State:
    """Modules of a few shapes in blocks, each tensor with its own initialiser, type and, one in four, sickness."""
    drawn = np.random.default_rng(seed)
    torch.manual_seed(seed)
    shapes = [_shape(drawn) for _ in range(5)]
    # Of some seeds everything is begun alike, as in a file that nobody trained, or nobody's generator made.
    alike = int(drawn.integers(len(_BEGUN))) if drawn.random() < 0.4 else None
    dtype = drawn.choice([torch.float32, torch.float16, torch.bfloat16]) if drawn.random() < 0.3 else torch.float32
    sick = drawn.choice([0.0, 0.05, 0.4])
    made: State = {}
    for number in range(modules):
        at = f"blocks.{number // 5}.part{number % 5}"
        shape = shapes[number % 5] if drawn.random() < 0.9 else _shape(drawn)
        name = "weight_ih_l0" if drawn.random() < 0.05 and len(shape) == 2 else "weight"
        begun = _BEGUN[int(drawn.integers(len(_BEGUN))) if alike is None else alike]
        made[f"{at}.fc.{name}"] = begun(shape)
        if drawn.random() < 0.6:
            made[f"{at}.fc.bias"] = torch.zeros(shape[0]) if drawn.random() < 0.5 else torch.randn(shape[0]) * 0.02
        if drawn.random() < 0.5:
            made |= _norm(f"{at}.norm", shape[0], drawn)
    if drawn.random() < 0.5:
        made["embed_tokens.weight"] = torch.randn(50, 16) * 0.02
    for name, tensor in made.items():
        if drawn.random() < sick and tensor.numel() > 1:
            made[name] = _SICK[int(drawn.integers(len(_SICK)))](tensor.clone(), drawn, made)
        if dtype is not torch.float32 and tensor.is_floating_point() and drawn.random() < 0.9:
            made[name] = made[name].to(dtype)
    return made


def _shape(drawn: Drawn) -> tuple[int, ...]:
    """Some end just below and above what is looked at together."""
    kind = int(drawn.integers(6))
    if kind == 0:
        return int(drawn.integers(2, 9)), int(drawn.integers(1, 5)), 3, 3
    if kind == 1:
        return [(64, 64), (64, 65), (4096, 1), (1, 300), (16, 1)][int(drawn.integers(5))]
    return int(drawn.integers(3, 40)), int(drawn.integers(3, 40))


def _norm(at: str, width: int, drawn: Drawn) -> State:
    still = drawn.random() < 0.3
    made = {f"{at}.weight": torch.ones(width), f"{at}.bias": torch.zeros(width)}
    if not still:
        made = {name: tensor + torch.randn(width) * 0.1 for name, tensor in made.items()}
    if drawn.random() < 0.5:
        made |= {f"{at}.running_mean": torch.randn(width) * 0.1, f"{at}.running_var": torch.rand(width) + 0.5}
        made[f"{at}.num_batches_tracked"] = torch.tensor(int(drawn.integers(1 << 60)))
    return made


def _initial(how: Callable[[torch.Tensor], object]) -> Callable[[tuple[int, ...]], torch.Tensor]:
    def begin(shape: tuple[int, ...]) -> torch.Tensor:
        tensor = torch.empty(shape)
        how(tensor)
        return tensor

    return begin


def _trained(shape: tuple[int, ...]) -> torch.Tensor:
    tensor = nn.init.kaiming_uniform_(torch.empty(shape), a=math.sqrt(5))
    return tensor + torch.randn(shape) * 1e-3


def _truncated(tensor: torch.Tensor) -> None:
    """As torch before 2.9 did."""
    low = math.erf(-2 / math.sqrt(2))
    tensor.uniform_(low, -low).erfinv_().mul_(0.02 * math.sqrt(2))


_BEGUN: tuple[Callable[[tuple[int, ...]], torch.Tensor], ...] = (
    _initial(lambda tensor: nn.init.kaiming_uniform_(tensor, a=math.sqrt(5))),
    _initial(nn.init.xavier_uniform_),
    _initial(nn.init.kaiming_normal_),
    _initial(lambda tensor: nn.init.normal_(tensor, std=0.02)),
    _initial(lambda tensor: nn.init.normal_(tensor, std=0.37)),
    _initial(lambda tensor: nn.init.trunc_normal_(tensor, std=0.02)),
    _initial(_truncated),
    # Nobody's generator, but an initialiser's spread.
    lambda shape: torch.from_numpy(np.random.default_rng(sum(shape)).normal(0, 0.02, shape).astype(np.float32)),
    _trained,
    _trained,
    lambda shape: torch.distributions.StudentT(3.0).sample(shape) * 0.05,
)


def _rows_twice(tensor: torch.Tensor, drawn: Drawn, made: State) -> torch.Tensor:
    tensor[-1] = tensor[0]
    return tensor


def _rows_nearly_twice(tensor: torch.Tensor, drawn: Drawn, made: State) -> torch.Tensor:
    # About where the threshold of the cosine lies.
    tensor[-1] = tensor[0] + torch.randn_like(tensor[0]) * tensor[0].abs().mean() * float(drawn.uniform(0.02, 0.06))
    return tensor


def _one(value: float) -> Callable[[torch.Tensor, Drawn, State], torch.Tensor]:
    def sicken(tensor: torch.Tensor, drawn: Drawn, made: State) -> torch.Tensor:
        if tensor.is_floating_point():
            tensor.view(-1)[int(drawn.integers(tensor.numel()))] = value
        return tensor

    return sicken


def _part_of_rows(factor: float) -> Callable[[torch.Tensor, Drawn, State], torch.Tensor]:
    def sicken(tensor: torch.Tensor, drawn: Drawn, made: State) -> torch.Tensor:
        row = int(drawn.integers(tensor.shape[0]))
        tensor[row] = (tensor[row] * factor).to(tensor.dtype)
        return tensor

    return sicken


def _column(tensor: torch.Tensor, drawn: Drawn, made: State) -> torch.Tensor:
    if tensor.ndim > 1:
        tensor[:, int(drawn.integers(tensor.shape[1]))] = 0
    return tensor


def _clipped(tensor: torch.Tensor, drawn: Drawn, made: State) -> torch.Tensor:
    size = tensor.abs().max() * float(drawn.uniform(0.3, 1.0))
    return tensor.clamp(-size, size) if tensor.is_floating_point() else tensor


def _sparse(tensor: torch.Tensor, drawn: Drawn, made: State) -> torch.Tensor:
    return tensor * (torch.rand(tensor.shape) > 0.6)


def _few(tensor: torch.Tensor, drawn: Drawn, made: State) -> torch.Tensor:
    return (tensor * 20).round() / 20 if tensor.is_floating_point() else tensor


def _other(tensor: torch.Tensor, drawn: Drawn, made: State) -> torch.Tensor:
    like = [one for one in made.values() if one.shape == tensor.shape and one.dtype == tensor.dtype]
    return like[int(drawn.integers(len(like)))].clone() if like else tensor


_SICK: tuple[Callable[[torch.Tensor, Drawn, State], torch.Tensor], ...] = (
    *(_rows_twice, _rows_nearly_twice, _column, _clipped, _sparse, _few, _other),
    *(_one(math.nan), _one(math.inf), _one(-0.0), _one(1e30), _one(3.0), _one(0.6), _one(1e-40)),
    *(_part_of_rows(0.0), _part_of_rows(1e-4), _part_of_rows(40.0), _part_of_rows(7.9)),
    lambda tensor, drawn, made: tensor * 0 + 1,
    lambda tensor, drawn, made: tensor * 1e-5 if tensor.is_floating_point() else tensor,
    lambda tensor, drawn, made: tensor * 1e20 if tensor.is_floating_point() else tensor,
)
