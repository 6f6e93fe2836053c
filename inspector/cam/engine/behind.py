"""Does the gradient of the answer reach the patches at a layer, or only the class token? One question to autograd.

Shapes cannot tell: an answer that is read from the first token and one from the mean of all come from the same tensor.
So the forward runs without data up to the layer, as a trace does, and with random numbers behind it. That costs next
to nothing, works for a model without numbers, and does not depend on what was learned (a head of zeros).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from inspector.cam.engine.capture import first_tensor, replace_tensor, unwrap
from inspector.cam.engine.tensors import spatial
from inspector.cam.engine.trace import scores_in, structure_of
from inspector.cam.report import LayerProposal
from inspector.cam.runnable import is_compiled, running_eagerly
from inspector.errors import ExplainError

# Small, so that no softmax behind the layer is cut off.
_SIZE = 0.1


def patches_reach(model: nn.Module, layer: LayerProposal, input_shape: tuple[int, int, int]) -> bool | None:
    """Whether a patch at this layer's output changes the answer; None where that cannot be told.

    layer: of tokens. input_shape: (C, H, W). The model is neither run nor changed.
    """
    bare = unwrap(model)
    with running_eagerly() if any(map(is_compiled, bare.modules())) else nullcontext():
        try:
            start, scores = _from(structure_of(bare), layer, input_shape)
            (found,) = torch.autograd.grad(scores, [start], [_drawn(score) for score in scores])
            patches, prefix = spatial(found, layer)
        except (ExplainError, RuntimeError, TypeError, ValueError, AttributeError, IndexError, NotImplementedError):
            return None
    if bool(patches.any()):
        return True
    return False if bool(prefix.any()) else None


def _from(model: nn.Module, layer: LayerProposal, input_shape: tuple[int, int, int]) -> tuple[Tensor, list[Tensor]]:
    """(the layer's output of random numbers, the scores that come from it). model: on meta."""
    calls = 0
    starts: list[Tensor] = []
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    with ExitStack() as numbers, torch.inference_mode(False), torch.enable_grad():

        def begin(_module: nn.Module, _args: object, output: object) -> object:
            nonlocal calls
            calls += 1
            tensor = first_tensor(output)
            if calls - 1 != layer.call or tensor is None:
                return None
            starts.append(_drawn(tensor).requires_grad_())
            numbers.enter_context(_Numbers())
            return replace_tensor(output, tensor, starts[0].clone())

        model.get_submodule(layer.path).register_forward_hook(begin)
        answer = model(torch.zeros((2, *input_shape), device="meta", dtype=dtype))
        return starts[0], scores_in(answer)


class _Numbers(TorchFunctionMode):
    """Inside, whatever is computed with tensors that have no data is computed with random numbers in their place."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn: dict[int, tuple[Tensor, Tensor]] = {}  # the tensor itself too: an id is only unique while it lives

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return func(*tree_map(self._with_numbers, tuple(args)), **tree_map(self._with_numbers, dict(kwargs or {})))

    def _with_numbers(self, value: object) -> object:
        if not isinstance(value, Tensor) or not value.is_meta:
            return value
        if id(value) not in self._drawn:
            self._drawn[id(value)] = value, _drawn(value)
        return self._drawn[id(value)][1]


def _drawn(tensor: Tensor) -> Tensor:
    """Random numbers of this shape and kind. Raises TypeError for indices and masks, which nothing can be put for."""
    if not tensor.is_floating_point():
        raise TypeError("no numbers can be drawn for indices")
    numbers = torch.randn(tuple(tensor.shape), generator=torch.Generator().manual_seed(tensor.numel()))
    return (_SIZE * numbers).to(tensor.dtype)
