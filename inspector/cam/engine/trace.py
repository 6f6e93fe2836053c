"""Which modules ran in one forward pass, in which order, and what shapes they put out; no weight is read.

The forward runs on the meta device over a copy of the module structure whose tensors have shapes but no data, so it
takes milliseconds and neither the model nor the random state is touched. A model that cannot run there (it looks at
values) is run once on its own device with zeros instead.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from inspector.cam.centres.following import Following
from inspector.cam.centres.places import Places
from inspector.cam.engine.capture import borrowed, first_tensor, own_preparation, prepared_sizes, replace_tensor, unwrap
from inspector.cam.engine.paths import forerunners, paths_of
from inspector.cam.runnable import first_line, is_compiled, refuse_program, running_eagerly
from inspector.cam.targets.readings import logits_of, pixel_scores, tensors_in
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
PADDING = (nn.ConstantPad2d, nn.ReflectionPad2d, nn.ReplicationPad2d, nn.CircularPad2d)
_POOLING_2D = tuple(kind for kind in POOLING if kind.__name__.endswith("2d"))
_HEAD_COUNTS = ("num_heads", "num_attention_heads", "heads", "n_heads", "n_head", "nhead")
_CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)
_GATES = (nn.Sigmoid, nn.Hardsigmoid)
_NORMS = (nn.BatchNorm2d, nn.InstanceNorm2d)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """One call of one module.

    path, call: which module, and its how-manieth call. kind: class name. shape: of its first output tensor, with the
    batch dimension. memory: equal numbers mean outputs that are one tensor or views of it. inputs: the same for its
    input tensors. several: there are more output tensors than the first. pooling: made by a pooling or padding layer.
    attention: an innermost module with attention heads. over_places: by its kind, its last two axes are places.
    weights: it has some of its own. channels: "first" or "last" by its kind, "" where that says nothing. reaches: the
    answer depends on this output and this output on the picture. alone: and on nothing beside it. Both are True where
    it is not known. gate: by its kind it weighs, from 0 to 1. passes: it gave back its input as it was (an Identity, a
    dropout). comes_from: bit n says that it comes from the n-th call of the trace; 0 where it is not known.
    places: where its elements look, None where that is not known.
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
    over_places: bool = False
    weights: bool = False
    channels: str = ""
    reaches: bool = True
    alone: bool = True
    gate: bool = False
    passes: bool = False
    comes_from: int = 0
    places: Places | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One forward pass.

    input_shape: (C, H, W), of a detector that resizes by itself what it makes. batch: how many pictures. calls: in the
    order in which they finished. classes: width of the answer, also of each pixel's, None if unclear. boxes: the answer
    is a detector's. on_meta: whether it ran without data.
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
    refuse_program(bare)
    with running_eagerly() if any(map(is_compiled, bare.modules())) else nullcontext():
        return _traced(bare, input_shape)


def _traced(bare: nn.Module, input_shape: tuple[int, int, int]) -> Trace:
    try:
        # Two pictures, since their dimension then tells maps from tables; without data the second costs nothing.
        return _run(structure_of(bare), 2, input_shape, torch.device("meta"))
    except Exception:  # noqa: BLE001 - whatever meta cannot do, the real run below decides and reports
        pass
    with borrowed(bare):
        device = next((parameter.device for parameter in bare.parameters()), torch.device("cpu"))
        try:
            return _run(bare, 1, input_shape, device)
        except Exception as error:  # any error of the user's own forward
            shape = "x".join(map(str, input_shape))
            if isinstance(error, TypeError):
                hint = "It is called with a batch of pictures alone; a module around it can give what else it takes."
            else:
                hint = "Choose the size and the channels that it was trained with."
            raise ExplainError(
                f"The model does not accept an input of {shape}: {first_line(error)}", hint=hint
            ) from error


def structure_of(model: nn.Module) -> nn.Module:
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
    following = Following()
    recorder = _Recorder(following, by_path=device.type == "meta")
    handles = []
    # What a detector resizes to by itself is the picture whose grids its layers have.
    inner: list[tuple[int, int]] = []
    own = own_preparation(model)
    if own is not None:
        handles.append(own.register_forward_hook(lambda _m, _a, output: _remember(inner, output)))
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    try:
        for path, module in model.named_modules():
            if path and not isinstance(module, torch.jit.ScriptModule):  # which nobody can watch
                handles.append(module.register_forward_hook(recorder.hook(path, module), with_kwargs=True))
        # Without data a graph costs nothing, and it says which outputs the answer comes from.
        with torch.inference_mode(False), torch.set_grad_enabled(recorder.by_path):
            picture = torch.zeros((batch, *input_shape), device=device, dtype=dtype, requires_grad=recorder.by_path)
            start = picture.clone()
            following.begin(start)
            # Only where nothing is computed: what is kept for following would be every activation.
            with following if recorder.by_path else nullcontext():
                answer = model(start)
    finally:
        for handle in handles:
            handle.remove()
    return Trace(
        input_shape=(input_shape[0], *inner[0]) if inner else input_shape,
        batch=batch,
        calls=recorder.finished(answer, start),
        classes=_width_of(answer),
        boxes=isinstance(answer, list),
        on_meta=device.type == "meta",
    )


def _remember(inner: list[tuple[int, int]], output: object) -> None:
    found = prepared_sizes(output)
    if found is not None:
        inner.append(found[1])


def _width_of(answer: object) -> int | None:
    for read in (logits_of, pixel_scores):
        try:
            return int(read(answer).shape[1])
        except ExplainError:
            continue
    return None


class _Recorder:
    """by_path: whether outputs are followed through the graph."""

    def __init__(self, following: Following, *, by_path: bool) -> None:
        self.by_path = by_path
        self._following = following
        self._calls: list[TracedCall] = []
        self._counts: dict[str, int] = {}
        self._alive: list[Tensor] = []  # ids are only unique while the tensors live
        self._origin: dict[int, int] = {}  # of the copies that went on in the place of outputs
        self._nodes: list[Node | None] = []
        self._steps: set[Node | None] = set()

    def hook(self, path: str, module: nn.Module) -> Callable[..., object]:
        kind = type(module).__name__
        attention = _has_heads(module)
        weights = any(parameter is not None for parameter in module._parameters.values())
        pooling, over_places, channels = isinstance(module, POOLING + PADDING), _is_over_places(module), _order(module)

        def record(_module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object], output: object) -> object:
            tensor = first_tensor(output)
            call = self._counts.get(path, 0)
            self._counts[path] = call + 1
            if tensor is None:
                return None
            inputs = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, Tensor)]
            self._alive.extend((tensor, *inputs))
            self._calls.append(
                TracedCall(
                    path=path,
                    call=call,
                    kind=kind,
                    shape=tuple(tensor.shape),
                    memory=self._memory(tensor),
                    inputs=tuple(self._memory(arg) for arg in inputs),
                    several=sum(1 for _ in tensors_in(output)) > 1,
                    pooling=pooling,
                    attention=attention,
                    over_places=over_places,
                    weights=weights,
                    channels=channels,
                    gate=isinstance(module, _GATES),
                    # The copy that went on in the place of an output, and nothing was written into it.
                    passes=tensor.grad_fn in self._steps and any(tensor is arg for arg in inputs),
                    places=self._following.places_of(tensor) if self.by_path else None,
                )
            )
            if not self.by_path or not tensor.requires_grad:
                self._nodes.append(None)
                return None
            # As when it is explained: what goes on is a copy of this output, so that the graph has a place for it.
            copy = tensor.clone()
            self._alive.append(copy)
            self._origin[id(copy)] = self._memory(tensor)
            self._nodes.append(copy.grad_fn)
            self._steps.add(copy.grad_fn)
            return replace_tensor(output, tensor, copy)

        return record

    def finished(self, answer: object, start: Tensor) -> tuple[TracedCall, ...]:
        """The calls, with what the graph says of them."""
        calls = self._calls
        if self.by_path:
            scores = scores_in(answer)
            reached, alone = paths_of(scores, start)
            calls = [
                replace(call, reaches=node in reached, alone=node in alone, comes_from=before)
                for call, node, before in zip(calls, self._nodes, forerunners(scores, self._nodes), strict=True)
            ]
        # The innermost that runs on the picture: a table of positions has a number of heads too.
        heads = {call.path for call in calls if call.attention and call.reaches}
        return tuple(
            replace(call, attention=False)
            if call.attention and any(path.startswith(f"{call.path}.") for path in heads)
            else call
            for call in calls
        )

    def _memory(self, tensor: Tensor) -> int:
        base = tensor._base
        name = id(tensor if base is None else base)
        return self._origin.get(name, name)


def _is_over_places(module: nn.Module) -> bool:
    if isinstance(module, _CONVOLUTIONS):
        return max(*module.kernel_size, *module.stride) > 1
    return isinstance(module, _POOLING_2D + _NORMS)


def _order(module: nn.Module) -> str:
    """Where this kind of module has its channels. A subclass may have them elsewhere when it computes otherwise."""
    if isinstance(module, _CONVOLUTIONS + _NORMS + _POOLING_2D + PADDING):
        return "first"
    return "last" if type(module).forward in (nn.Linear.forward, nn.LayerNorm.forward) else ""


def scores_in(answer: object) -> list[Tensor]:
    """What is explained of an answer: class scores, pixel scores, else all of it."""
    for read in (logits_of, pixel_scores):
        try:
            return [read(answer)]
        except ExplainError:
            continue
    return list(tensors_in(answer))


def _has_heads(module: nn.Module) -> bool:
    """Attention by what it has, not by what it is called: everybody keeps the head count."""
    return isinstance(module, nn.MultiheadAttention) or any(
        isinstance(getattr(module, name, None), int) for name in _HEAD_COUNTS
    )
