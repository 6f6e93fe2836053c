"""Which modules ran in one forward pass, in which order, and what shapes they put out; no weight is read.

The forward runs on the meta device over a copy of the module structure whose tensors have shapes but no data, so it
takes milliseconds and neither the model nor the random state is touched. A model that cannot run there (it looks at
values) is run once on its own device with zeros instead.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.cam.capture import borrowed, first_tensor, unwrap
from inspector.cam.readings import logits_of, pixel_scores, tensors_in
from inspector.errors import ExplainError

POOLING = (
    nn.MaxPool1d,
    nn.MaxPool2d,
    nn.AvgPool1d,
    nn.AvgPool2d,
    nn.LPPool2d,
    nn.FractionalMaxPool2d,
    nn.AdaptiveAvgPool1d,
    nn.AdaptiveAvgPool2d,
    nn.AdaptiveMaxPool1d,
    nn.AdaptiveMaxPool2d,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """One call of one module.

    path, call: which module, and its how-manieth call. kind: class name. shape: of its first output tensor, with the
    batch dimension. memory: equal numbers mean outputs that are one tensor or views of it. inputs: the same for its
    input tensors. several: there are more output tensors than the first. pooling: made by a pooling layer.
    attention: an innermost module with attention heads.
    """

    path: str
    call: int
    kind: str
    shape: tuple[int, ...]
    memory: int
    inputs: tuple[int, ...]
    several: bool
    pooling: bool
    attention: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One forward pass.

    input_shape: (C, H, W). batch: how many pictures. calls: in the order in which they finished. classes: width of the
    answer, also of each pixel's, None if unclear. boxes: the answer is a detector's. on_meta: whether it ran without
    data.
    """

    input_shape: tuple[int, int, int]
    batch: int
    calls: tuple[TracedCall, ...]
    classes: int | None
    boxes: bool
    on_meta: bool


def trace(model: nn.Module, input_shape: tuple[int, int, int]) -> Trace:
    """Run one forward pass for shapes. input_shape: (C, H, W).

    Raises ExplainError with torch's own words when the model does not accept such an input.
    """
    bare = unwrap(model)
    try:
        # Two pictures, since their dimension then tells maps from tables; without data the second costs nothing.
        return _run(_structure_of(bare), 2, input_shape, torch.device("meta"))
    except Exception:  # noqa: BLE001 - whatever meta cannot do, the real run below decides and reports
        pass
    with borrowed(bare):
        device = next((parameter.device for parameter in bare.parameters()), torch.device("cpu"))
        try:
            return _run(bare, 1, input_shape, device)
        except Exception as error:  # any error of the user's own forward
            shape = "x".join(map(str, input_shape))
            raise ExplainError(
                f"The model does not accept an input of {shape}: {_first_line(error)}",
                hint="Choose the size and the channels that it was trained with.",
            ) from error


def _structure_of(model: nn.Module) -> nn.Module:
    """A copy of the modules in evaluation mode whose parameters and buffers are on meta; no weight is copied."""
    memo: dict[int, object] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=False)
    for buffer in model.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    twin = copy.deepcopy(model, memo)
    for module in twin.modules():
        module.training = False
        # The caller's hooks belong to the caller's model.
        module._forward_hooks.clear()
        module._forward_pre_hooks.clear()
    return twin


def _run(model: nn.Module, batch: int, input_shape: tuple[int, int, int], device: torch.device) -> Trace:
    calls: list[TracedCall] = []
    counts: dict[str, int] = {}
    alive: list[Tensor] = []  # ids are only unique while the tensors live
    handles = [
        module.register_forward_hook(_recorder(path, module, calls, counts, alive))
        for path, module in model.named_modules()
        if path
    ]
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    try:
        with torch.inference_mode(False), torch.no_grad():
            answer = model(torch.zeros((batch, *input_shape), device=device, dtype=dtype))
    finally:
        for handle in handles:
            handle.remove()
    return Trace(
        input_shape=input_shape,
        batch=batch,
        calls=tuple(calls),
        classes=_width_of(answer),
        boxes=isinstance(answer, list),
        on_meta=device.type == "meta",
    )


def _width_of(answer: object) -> int | None:
    for read in (logits_of, pixel_scores):
        try:
            return int(read(answer).shape[1])
        except ExplainError:
            continue
    return None


def _recorder(
    path: str, module: nn.Module, calls: list[TracedCall], counts: dict[str, int], alive: list[Tensor]
) -> Callable[[nn.Module, tuple[object, ...], object], None]:
    kind = type(module).__name__
    pooling = isinstance(module, POOLING)
    attention = _has_heads(module) and not any(_has_heads(inner) for inner in module.modules() if inner is not module)

    def record(_module: nn.Module, args: tuple[object, ...], output: object) -> None:
        tensor = first_tensor(output)
        call = counts.get(path, 0)
        counts[path] = call + 1
        if tensor is None:
            return
        inputs = [arg for arg in args if isinstance(arg, Tensor)]
        alive.extend((tensor, *inputs))
        calls.append(
            TracedCall(
                path=path,
                call=call,
                kind=kind,
                shape=tuple(tensor.shape),
                memory=_memory(tensor),
                inputs=tuple(_memory(arg) for arg in inputs),
                several=sum(1 for _ in tensors_in(output)) > 1,
                pooling=pooling,
                attention=attention,
            )
        )

    return record


def _has_heads(module: nn.Module) -> bool:
    """Attention by what it has, not by what it is called: torch, timm and transformers all keep the head count."""
    return isinstance(module, nn.MultiheadAttention) or any(
        isinstance(getattr(module, name, None), int) for name in ("num_heads", "num_attention_heads")
    )


def _memory(tensor: Tensor) -> int:
    base = tensor._base
    return id(tensor if base is None else base)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") + "." if text else f"{type(error).__name__}."
