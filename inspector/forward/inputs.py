"""Inputs of a model: the sizes that its layers would take, one that somebody states, and numbers to fill them with."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping

import torch
from torch import nn

from inspector.architectures.types import Given

_SIDES = (224, 32, 28, 64, 96, 128, 227, 256, 299, 384, 512, 48, 160, 112, 84, 16)
_LENGTHS = (128, 1024, 16_000, 100, 187, 512, 784, 3000)
_TOKENS = 128


def required_names(model: nn.Module) -> list[str]:
    """Names of what forward cannot do without, in order."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(model.forward).parameters
    except (TypeError, ValueError):
        return [""]
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [n for n, p in parameters.items() if p.kind in places and p.default is inspect.Parameter.empty] or [""]


def proposed_inputs(model: nn.Module, batch: int) -> Iterator[tuple[Given, str]]:
    """Inputs to try, the likeliest first: by the layers that a tensor can come into, in their order."""
    seen: set[type] = set()
    for path, module in model.named_modules():
        kind = next((k for k in _ENTRANCES if isinstance(module, k)), None)
        if kind is None or kind in seen:
            continue
        seen.add(kind)
        for shape, dtype, below in _ENTRANCES[kind](module, model):
            why = f"assumed from its first layer that takes one: {path or 'the model itself'} ({kind.__name__})"
            kept = weights_dtype(model) if dtype == "float32" else dtype
            yield Given(name="", shape=(batch, *shape), dtype=kept, below=below), why
        if len(seen) == 3:
            return


def stated_input(model: nn.Module, shape: tuple[int, ...]) -> Given:
    """The one input of a shape that somebody states; one number where an embedding comes first is so many tokens."""
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear, nn.Embedding)
    first = next((m for m in model.modules() if isinstance(m, kinds)), None)
    if isinstance(first, nn.Embedding) and len(shape) == 2:
        return Given(name="", shape=shape, dtype="int64", below=first.num_embeddings)
    return Given(name="", shape=shape, dtype=weights_dtype(model))


def weights_dtype(model: nn.Module) -> str:
    """Of its first weights in floating point; float32 where there are none."""
    first = next((p for p in model.parameters() if p.is_floating_point()), None)
    return "float32" if first is None else str(first.dtype).removeprefix("torch.")


def blank_of(given: Given) -> torch.Tensor:
    """A tensor of that shape and type on the meta device."""
    return torch.empty(given.shape, dtype=getattr(torch, given.dtype), device="meta")


def filled(given: Given, generator: torch.Generator) -> torch.Tensor:
    """Random numbers of that shape and type: normal, or whole ones from 0 to below its bound."""
    dtype = getattr(torch, given.dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(given.shape, dtype=dtype, generator=generator)
    return torch.randint(0, max(1, given.below or 2), given.shape, generator=generator).to(dtype)


def by_place(
    given: list[torch.Tensor], inputs: tuple[Given, ...]
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """(arguments in order, arguments by name)."""
    pairs = list(zip(given, inputs, strict=True))
    return [t for t, one in pairs if not one.name], {one.name: t for t, one in pairs if one.name}


Entrance = Iterator[tuple[tuple[int, ...], str, int]]


def _pictures(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Conv2d)
    sides: tuple[int, ...] = _SIDES
    kernel = module.kernel_size[0]
    if isinstance(kernel, int) and tuple(module.stride) == tuple(module.kernel_size) and kernel > 1:
        for name, parameter in model.named_parameters():
            # Patches, and a table of positions that tells how many.
            if "pos" in name and parameter.dim() in (2, 3):
                rows = int(parameter.shape[-2])
                found = [
                    math.isqrt(n) * kernel for n in (rows, rows - 1, rows - 2) if n > 0 and math.isqrt(n) ** 2 == n
                ]
                sides = tuple(dict.fromkeys((*found, *sides)))
                break
    yield from (((module.in_channels, side, side), "float32", 0) for side in sides)


def _sequences(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Conv1d)
    yield from (((module.in_channels, length), "float32", 0) for length in _LENGTHS)


def _clips(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Conv3d)
    yield from (((module.in_channels, *size), "float32", 0) for size in ((16, 112, 112), (32, 224, 224), (32, 32, 32)))


def _vectors(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Linear)
    yield (module.in_features,), "float32", 0
    yield (_TOKENS, module.in_features), "float32", 0
    side = math.isqrt(module.in_features)
    if side * side == module.in_features:
        # A picture that the model flattens by itself.
        yield (1, side, side), "float32", 0
    side = math.isqrt(module.in_features // 3)
    if 3 * side * side == module.in_features:
        yield (3, side, side), "float32", 0


def _ids(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.Embedding)
    rows = [m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)]
    tables = [int(p.shape[-2]) for n, p in model.named_parameters() if "pos" in n and p.dim() in (2, 3)]
    length = min([_TOKENS, *rows[1:], *tables])
    yield (length,), "int64", module.num_embeddings
    yield (), "int64", module.num_embeddings


def _steps(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.RNNBase)
    yield (_TOKENS, module.input_size), "float32", 0


def _heads(module: nn.Module, model: nn.Module) -> Entrance:
    assert isinstance(module, nn.MultiheadAttention)
    yield (_TOKENS, module.embed_dim), "float32", 0


_ENTRANCES = {
    nn.Conv2d: _pictures,
    nn.Conv1d: _sequences,
    nn.Conv3d: _clips,
    nn.Embedding: _ids,
    nn.RNNBase: _steps,
    nn.MultiheadAttention: _heads,
    nn.Linear: _vectors,
}
