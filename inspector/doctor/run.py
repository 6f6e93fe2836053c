"""What a person asks to be run on, and the pass of a model whose architecture is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspector.architectures.facts import default_input, usual_inputs
from inspector.doctor.report import Trace
from inspector.units import human_shape

if TYPE_CHECKING:
    from torch import Tensor, nn

    from inspector.architectures.types import ArchitectureSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wish:
    """What to run on. shape: of random input, without its batch; None for the usual one. tensors: the input itself, by
    name; input_from: how it was made. batch: the input so many times. training: the mode."""

    shape: tuple[int, ...] | None = None
    tensors: Mapping[str, Tensor] | None = None
    input_from: str = ""
    batch: int = 1
    training: bool = False


def trace_known(model: nn.Module, label: str, spec: ArchitectureSpec | None, wish: Wish) -> Trace:
    """One pass of a model that was built from a spec, or by code (None). On meta where its weights are.

    Raises ModelError where nothing tells what it takes.
    """
    from inspector.doctor.trace import trace_model

    args, kwargs, input_from = arguments_for(model, spec, wish)
    return trace_model(
        model, args, kwargs, label=label, input_from=input_from, training=wish.training, batched=not wish.tensors
    )


def arguments_for(
    model: nn.Module, spec: ArchitectureSpec | None, wish: Wish
) -> tuple[tuple[Any, ...], dict[str, Any], str]:
    """(arguments, named ones, how they were made) of a pass. Raises as `trace_known`."""
    from inspector.doctor.inputs import arguments_of, batched, random_input, random_tensor

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    input_from = wish.input_from
    if wish.tensors:
        args, kwargs = arguments_of(model, {name: batched(t, wish.batch) for name, t in wish.tensors.items()})
    elif spec is None:
        made, input_from = random_input(model, wish.shape, batch=wish.batch)
        args = (made,)
    else:
        given = usual_inputs(spec)
        shapes = [one.shape[1:] for one in given] or [default_input(spec)]
        if wish.shape is not None:
            shapes[0] = wish.shape
        for index, shape in enumerate(shapes):
            below = given[index].below if given else 0
            tensor = random_tensor((wish.batch, *shape), below=below or 0)
            name = given[index].name if given else ""
            if name and index:
                kwargs[name] = tensor
            else:
                args = (*args, tensor)
        usual = "" if wish.shape is not None else ", the usual size of this network"
        input_from = f"random numbers {human_shape((wish.batch, *shapes[0]))}, seed 0{usual}"
    if all(parameter.is_meta for parameter in model.parameters()) and any(True for _ in model.parameters()):
        args = tuple(tensor.to("meta") for tensor in args)
        kwargs = {name: tensor.to("meta") for name, tensor in kwargs.items()}
        input_from = f"{input_from}; shapes alone, since there are no weights"
    return args, kwargs, input_from


def input_numel(spec: ArchitectureSpec | None, wish: Wish) -> int:
    """Numbers in the whole input, the batch included, for an estimate of memory."""
    if wish.tensors:
        # As `batched` does: one sample is repeated, a batch stays what it is.
        repeats = [wish.batch if t.dim() and t.shape[0] == 1 else 1 for t in wish.tensors.values()]
        return sum(n * tensor.numel() for n, tensor in zip(repeats, wish.tensors.values(), strict=True))
    shape = wish.shape or (default_input(spec) if spec is not None else (3, 224, 224))
    return wish.batch * math.prod(shape)
