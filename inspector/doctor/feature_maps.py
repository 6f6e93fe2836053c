"""The channels of one tensor of a pass as small maps: what a module was given, or gave, when it ran.

Only the asked tensor is kept, copied the moment the module is done, so that what changes it in place afterwards (an
in-place ReLU) cannot reach the copy.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from inspector.doctor.maps_asked import MapsAsked, Order, Side
from inspector.doctor.maps_report import Axes, FeatureMaps
from inspector.doctor.modes import in_mode
from inspector.doctor.record import unwatched
from inspector.doctor.statistics import statistics_of
from inspector.errors import LayerNotSpatial, ModelError, NoSuchLayer, UsageError
from inspector.forward.watch import Call, ForwardError, Listener, Operation, tensors_in, watch
from inspector.units import counted, human_shape

#: Cells of a map that is drawn whole, on either side; of a line.
MOST_SIDE, MOST_LENGTH = 128, 2048
# These take and give (N, C, ...places).
_CHANNELS_SECOND = {
    "convolution", "native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit_no_training",
    "_native_batch_norm_legit", "max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d", "avg_pool1d",
    "upsample_nearest2d", "upsample_bilinear2d", "pixel_shuffle", "native_group_norm",
}  # fmt: skip
_CHANNELS_LAST = (nn.Linear, nn.LayerNorm, nn.Embedding, nn.MultiheadAttention)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The asked tensor. first: its copy, of the first sample alone. shape: of the whole. time, calls: which call it was
    made in, and how many there were of its module. tensors: on its side."""

    first: Tensor
    shape: tuple[int, ...]
    path: str
    kind: str
    time: int
    calls: int
    tensors: int
    batch: int


# What else knows how a tensor is read, where the operators of the pass do not tell; None where it does not either.
ReadAxes = Callable[[Seen], Axes | None]


class _Catcher(Listener):
    """Keeps one tensor of the asked call, and the shapes by which layouts are told."""

    def __init__(self, asked: MapsAsked, path: str) -> None:
        self.asked, self.path = asked, path
        self.kept: tuple[Tensor, tuple[int, ...], int, int] | None = None
        self.kind, self.calls, self.tensors = "", 0, 0
        self.second: set[tuple[int, ...]] = set()
        self.last: set[tuple[int, ...]] = set()

    def enter(self, call: Call) -> None:
        if isinstance(call.module, _CHANNELS_LAST):
            self.last.update(tuple(t.shape) for t in tensors_in(call.args))
        if call.path == self.path:
            self.kind, self.calls = type(call.module).__name__, max(self.calls, call.time)
            if self.asked.side is Side.INPUT:
                self._keep(call, (call.args, dict(call.kwargs)))

    def leave(self, call: Call) -> None:
        if isinstance(call.module, _CHANNELS_LAST):
            self.last.update(tuple(t.shape) for t in tensors_in(call.output))
        if call.path == self.path and self.asked.side is Side.OUTPUT:
            self._keep(call, call.output)

    def operation(self, operation: Operation) -> None:
        if operation.operator._schema.name.partition("::")[2] in _CHANNELS_SECOND:
            with unwatched():
                given, made = operation.args[:1], operation.output
                self.second.update(tuple(t.shape) for one in (given, made) for t in list(tensors_in(one))[:1])

    def _keep(self, call: Call, value: Any) -> None:
        if self.asked.time not in (None, call.time):
            return
        with unwatched():
            found = list(tensors_in(value))
            self.tensors = len(found)
            self.kept = None
            if self.asked.tensor < len(found):
                tensor = found[self.asked.tensor].detach()
                if tensor.layout is torch.strided:
                    first = tensor[:1] if tensor.dim() else tensor
                    self.kept = (first.clone(), tuple(tensor.shape), call.time, len(found))


def map_features(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    asked: MapsAsked,
    *,
    label: str,
    input_from: str = "",
    training: bool = False,
    read: ReadAxes | None = None,
) -> FeatureMaps:
    """Run `model(*args, **kwargs)` once, as `trace_model` does, and picture one tensor of it; it stays as it was.

    read: asked where the operators of the pass do not tell which axis holds the channels.
    Raises NoSuchLayer for a module or call that there is not, LayerNotSpatial for what is no picture, ModelError where
    the pass fails.
    """
    seen, catcher, _ = _caught(model, args, kwargs, asked, training)
    path, axes = seen.path, _axes(seen, catcher, read)
    channels = _as_channels(seen.first, axes)
    values = tuple(statistics_of(one) for one in channels)
    statistics = tuple(one for one in values if one is not None)
    order = _in_order([one.deviation for one in statistics], asked.order)
    shown = tuple(order[: max(1, asked.most)])
    drawn = _drawn(channels[list(shown)], axes)
    lows = [one.minimum for one in statistics if one.minimum is not None]
    highs = [one.maximum for one in statistics if one.maximum is not None]
    return FeatureMaps(
        target=label,
        input_from=input_from,
        training=training,
        path=path,
        kind=seen.kind,
        time=seen.time,
        calls=seen.calls,
        side=asked.side,
        tensor=asked.tensor,
        tensors=seen.tensors,
        shape=seen.shape,
        dtype=str(seen.first.dtype).removeprefix("torch."),
        axes=axes,
        channels=statistics,
        low=min(lows, default=None),
        high=max(highs, default=None),
        order=asked.order,
        shown=shown,
        drawn=(drawn.shape[1], drawn.shape[2]),
        raw=drawn.numpy(),
    )


def pooled_features(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], asked: MapsAsked, *, read: ReadAxes | None = None
) -> tuple[Tensor, Any]:
    """(one value of each channel of one tensor of a pass, what the model answered), of the first sample.

    A vector is taken as it is, of a map the mean over its places, of tokens that over their patches. Raises as
    `map_features`.
    """
    seen, catcher, output = _caught(model, args, kwargs, asked, False)
    whole = seen.shape[0] == seen.batch and all(side == 1 for side in seen.shape[2:])
    if len(seen.shape) >= 2 and whole and 0 not in seen.shape:
        return seen.first.reshape(-1).float(), output
    return _as_channels(seen.first, _axes(seen, catcher, read)).float().mean(dim=(1, 2)), output


def _caught(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], asked: MapsAsked, training: bool
) -> tuple[Seen, _Catcher, Any]:
    """The asked tensor of one pass, what was told of shapes on the way, and the model's answer."""
    path = first_path(model, asked.path)
    catcher = _Catcher(asked, path)
    with in_mode(model, training=training):
        try:
            given = list(tensors_in((tuple(args), dict(kwargs))))
            blank = any(one.is_meta for one in given)
            output = watch(model, args, kwargs, catcher, grad=training, one_device=blank)
        except ForwardError as raised:
            where = raised.calls[-1].path if raised.calls else ""
            raise ModelError(
                f"The forward pass fails in {where or 'the model itself'}, so nothing is pictured.",
                hint="The doctor says why: trace it without asking for maps.",
            ) from raised.error
    batch = given[0].shape[0] if given and given[0].dim() else 1
    return _seen(model, catcher, path, batch), catcher, output


def first_path(model: nn.Module, name: str) -> str:
    """The name under which a module is called in a pass: its first. Raises NoSuchLayer with close matches."""
    modules: dict[str, nn.Module] = dict(model.named_modules(remove_duplicate=False))
    if name not in modules:
        near = difflib.get_close_matches(name, [known for known in modules if known], n=3, cutoff=0.5)
        raise NoSuchLayer(
            f"The model has no module {name!r}.",
            hint=f"Close: {', '.join(near)}." if near else "A trace lists the modules that ran.",
        )
    if isinstance(modules[name], torch.jit.ScriptModule):
        raise NoSuchLayer(f"{name or 'The model'} is TorchScript: its modules run out of sight.")
    return next(known for known, module in modules.items() if module is modules[name])


def _seen(model: nn.Module, catcher: _Catcher, path: str, batch: int) -> Seen:
    asked, name = catcher.asked, path or "the model"
    if catcher.calls == 0:
        raise NoSuchLayer(f"{name} is not called by this pass.", hint="Choose the module around it.")
    if asked.time is not None and not 1 <= asked.time <= catcher.calls:
        raise NoSuchLayer(
            f"{name} is called {counted(catcher.calls, 'time')} in this pass; "
            f"there is no call {asked.time}, counted from 1."
        )
    if catcher.kept is None:
        has = "gives" if asked.side is Side.OUTPUT else "is given"
        if asked.tensor >= catcher.tensors:
            raise NoSuchLayer(f"{name} {has} {counted(catcher.tensors, 'tensor')}; there is no number {asked.tensor}.")
        raise LayerNotSpatial(f"{name} {has} a tensor that is not stored as plain numbers.")
    first, shape, time, tensors = catcher.kept
    if first.is_meta:
        raise LayerNotSpatial(f"{name} ran by shapes alone: there are no weights, so there are no values to picture.")
    if first.is_quantized:
        first = first.dequantize()
    if first.is_complex():
        raise LayerNotSpatial(f"{name} has complex numbers there, which are no grey values.")
    return Seen(
        first=first,
        shape=shape,
        path=path,
        kind=catcher.kind,
        time=time,
        calls=catcher.calls,
        tensors=tensors,
        batch=batch,
    )


def _axes(seen: Seen, catcher: _Catcher, read: ReadAxes | None) -> Axes:
    """How it is read, by evidence. Raises LayerNotSpatial."""
    shape, name, says = seen.shape, seen.path or "the model", human_shape(seen.shape)
    side = "gives" if catcher.asked.side is Side.OUTPUT else "is given"
    if len(shape) < 3 or 0 in shape:
        raise LayerNotSpatial(
            f"{name} {side} {says}: no height and width to picture.",
            hint="Choose a module before the pooling or flattening.",
        )
    if shape[0] != seen.batch:
        raise LayerNotSpatial(
            f"{name} {side} {says}, and the input has a batch of {seen.batch}: which axis is the batch is not known.",
            hint="Choose the module around it.",
        )
    found: Axes | None = None
    if len(shape) in (3, 4) and shape in catcher.second and shape not in catcher.last:
        grid = (1, shape[2]) if len(shape) == 3 else (shape[2], shape[3])
        because = "a convolution, norm or pooling of this pass has channels second in this shape"
        found = Axes(layout="NCL" if len(shape) == 3 else "NCHW", grid=grid, because=because)
    elif len(shape) in (3, 4) and read is not None:
        found = read(seen)
    if shape[2:] == (1, 1):
        raise LayerNotSpatial(
            f"{name} {side} {says}: one value for each channel, no picture.", hint="Choose a module before the pooling."
        )
    if found is None:
        reason = "which axis holds the channels, and whether the others are places, is not certain"
        if len(shape) > 4:
            reason = "pictures are drawn of (N, C, H, W), tokens of a certain grid, and (N, C, L)"
        raise LayerNotSpatial(f"{name} {side} {says}: {reason}.", hint="Choose another module, or its other side.")
    if found.grid == (1, 1):
        raise LayerNotSpatial(f"{name} {side} {says}: one place, no picture.", hint="Choose a module before it.")
    return found


def _as_channels(first: Tensor, axes: Axes) -> Tensor:
    """(1, ...) as (C, h, w)."""
    whole = first[0]
    if axes.layout in ("NCHW", "NCL"):
        return whole.reshape(whole.shape[0], *axes.grid)
    if axes.layout == "NHWC":
        return whole.permute(2, 0, 1)
    return whole[axes.prefix_tokens :].T.reshape(whole.shape[1], *axes.grid)


def _in_order(deviations: Sequence[float | None], order: Order) -> list[int]:
    """Numbers of the channels. deviations: None where nothing is finite, which comes last."""
    strength = [-1.0 if one is None else one for one in deviations]
    numbers = range(len(deviations))
    return list(numbers) if order is Order.NUMBER else sorted(numbers, key=lambda n: (-strength[n], n))


def _drawn(channels: Tensor, axes: Axes) -> Tensor:
    """float32, neighbouring cells averaged where there are more than are drawn."""
    most = (1, MOST_LENGTH) if axes.layout == "NCL" else (MOST_SIDE, MOST_SIDE)
    size = (min(channels.shape[1], most[0]), min(channels.shape[2], most[1]))
    values = channels.to(torch.float32)
    if size == tuple(channels.shape[1:]):
        return values.contiguous()
    return functional.adaptive_avg_pool2d(values[None], size)[0]


def as_asked(text: str, *, known: Sequence[str]) -> tuple[str, int | None]:
    """ "relu:0" -> ("relu", 1): the first call, as explain counts them; ("relu", None) without a number.

    known: names of modules, which may hold a colon themselves. Raises UsageError for an empty name.
    """
    if not text:
        raise UsageError("Of which module?", hint="A trace lists the modules that ran.")
    name, colon, number = text.rpartition(":")
    if text in known or not colon or not number.isdecimal():
        return text, None
    return name, int(number) + 1
