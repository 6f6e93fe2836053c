"""Hears of one pass and keeps what the doctor needs: calls, values, who made which tensor, the last function."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from inspector.doctor.cuts import Cuts
from inspector.doctor.frames import called_by_person, own_line
from inspector.doctor.gradients import GraphLines
from inspector.doctor.observations import AllNegative, Foreign, InPlace, Loss, OverFirst, Spread
from inspector.doctor.ranges import Unscaled, unscaled
from inspector.doctor.regroups import Regroups
from inspector.doctor.report import CallRecord, DeadChannels, End, Output, Saturation, SourceLine, TensorFacts
from inspector.doctor.reshapes import Reshape, reshape_of
from inspector.doctor.softmax_axes import OfOne, SoftmaxAxes
from inspector.doctor.squeezes import Squeezes
from inspector.doctor.statistics import statistics_of
from inspector.forward.settings import settings_as_written
from inspector.forward.watch import Call, Listener, Operation, tensors_in

_MOST_TENSORS = 64
INPUT = "input"
# Positions of a channel below which nothing is said of it.
_LEAST_POSITIONS = 49
_RELU = {"relu", "relu_"}
# Functions that read a tensor's values past every operator.
_READS = ("numpy", "__array__", "tolist", "item")
# Where the slope is 1 % of its greatest: sigmoid' = s(1 - s), 1/4 at most; tanh' = 1 - t^2, 1 at most.
_SIGMOID_END = 0.5 - 0.5 * (1 - 0.01) ** 0.5
_TANH_END = (1 - 0.01) ** 0.5
_SURE = 0.999
# Of a row of a softmax: compared with the greatest; a gap beyond is a mask's (-1e9, -10000).
_RANK, _MASKED = 5, 5_000.0
# exp(-30) is 1e-13: nothing of float32 is left.
WIDE_GAP = 30.0
# What gives another view of the same values.
_VIEWS = {"slice", "select", "view", "unsqueeze", "squeeze", "expand", "t", "transpose", "permute", "alias", "detach"}
_SAME_VALUES = _VIEWS | {"_unsafe_view", "clone", "_to_copy", "contiguous", "reshape", "upsample_bilinear2d"}
# What a model may end in, by operator.
_ENDS = {
    "_softmax": "softmax", "_safe_softmax": "softmax", "_log_softmax": "log_softmax", "sigmoid": "sigmoid",
    "sigmoid_": "sigmoid", "relu": "relu", "relu_": "relu", "addmm": "linear", "linear": "linear",
    "convolution": "linear",
}  # fmt: skip
LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div")
# What makes one of many, and which of its arguments says over which dimensions.
_REDUCES = {
    "_softmax": 1, "_log_softmax": 1, "_safe_softmax": 1, "mean": 1, "var": 1, "std": 1, "norm": 2,
    "linalg_vector_norm": 2, "var_mean": 1, "std_mean": 1, "cumsum": 1, "amax": 1, "logsumexp": 1,
}  # fmt: skip
_MAKERS = {"zeros", "ones", "full", "rand", "randn", "empty", "new_zeros", "new_ones", "zeros_like", "arange", "eye"}
_CHANNELS_SECOND = {"convolution", "native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit_no_training"}


@contextmanager
def unwatched() -> Iterator[None]:
    """Work of ours in the middle of a watched pass."""
    with torch._C.DisableTorchFunction(), _disable_current_modes(), torch.no_grad():
        yield


class Recorder(Listener):
    """values: whether numbers are looked at. gradients: whether the pass records them."""

    def __init__(
        self,
        model: nn.Module,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        values: bool,
        gradients: bool = False,
    ) -> None:
        self.values, self.gradients = values, gradients
        self.calls: list[CallRecord] = []
        self.operators = 0
        self.names_of_operators: set[str] = set()
        self.dead: list[DeadChannels] = []
        self.saturations: list[Saturation] = []
        self.foreign: list[Foreign] = []
        self.function_name, self.function_args = "", ((), {})  # type: tuple[str, tuple[Sequence[Any], Mapping[str, Any]]]
        # The last one, x.size(1) included.
        self.asked: tuple[str, Sequence[Any], Mapping[str, Any]] = ("", (), {})
        self.gave_no_tensor: dict[int, tuple[str, str, Any]] = {}
        self.used: set[int] = set()
        self.squeezes, self.cuts, self.lines = Squeezes(), Cuts(), GraphLines()
        self.axes, self.of_one = SoftmaxAxes(), []  # type: tuple[SoftmaxAxes, list[OfOne]]
        # Whether the forward takes gradients itself, as energies and physics do.
        self.differentiates = False
        self.reshapes: list[Reshape] = []
        self.all_negative: list[AllNegative] = []
        self.in_place: list[InPlace] = []
        self.spreads: list[Spread] = []
        self.over_first: list[OverFirst] = []
        self.maps: list[tuple[str, tuple[int, ...]]] = []
        self.lines_of_calls: dict[str, list[SourceLine | None]] = {}
        self.unscaled: Unscaled | None = None
        self.losses: list[Loss] = []
        self.stacked: list[SourceLine] = []
        self._ends: dict[int, tuple[weakref.ref[Tensor], End]] = {}
        self._born: dict[int, tuple[weakref.ref[Tensor], SourceLine | None]] = {}
        self._index: dict[int, int] = {}
        self._depth: dict[int, int] = {}
        self._makers: dict[int, tuple[weakref.ref[Tensor], str]] = {}
        self._operators_of: dict[int, tuple[weakref.ref[Tensor], str]] = {}
        self._views: dict[int, tuple[weakref.ref[Tensor], str]] = {}
        self._second: dict[int, weakref.ref[Tensor]] = {}
        self._joined: dict[int, tuple[weakref.ref[Tensor], list[tuple[int, ...]], int]] = {}
        self.given_to: dict[int, weakref.ref[Tensor]] = {}
        self._layers = dict(model.named_modules())
        self.names = {id(tensor): name for name, tensor in (*model.named_parameters(), *model.named_buffers())}
        first = next((t for t in tensors_in((args, dict(kwargs))) if t.dim() > 1), None)
        self.regroups = Regroups(0 if first is None else first.shape[0])
        for tensor in tensors_in((args, dict(kwargs))):
            self._makers[id(tensor)] = (weakref.ref(tensor), INPUT)

    def function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        name = getattr(function, "__name__", "")
        if name in _READS or getattr(getattr(function, "__self__", None), "__name__", "") == "data":
            self.used.update(id(one) for one in args if isinstance(one, Tensor))
        # Attributes are read by functions, too: x.shape is __get__.
        if name not in ("__get__", "__set__"):
            self.asked = (name, args, kwargs)
            self.differentiates |= name == "grad" and isinstance(function, FunctionType)
            if name in LOSSES and args and isinstance(args[0], Tensor) and len(self.losses) < _MOST_TENSORS:
                self.losses.append(Loss(name, self.end_of(args[0]), own_line()))
            if name not in ("size", "dim"):
                self.function_name, self.function_args = name, (args, kwargs)

    def returned(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        if isinstance(output, Tensor) and getattr(function, "__name__", "") in _MAKERS:
            self._born[id(output)] = (weakref.ref(output), own_line())
        if self.gradients:
            self.cuts.returned(function, args, kwargs, output)
            self.lines.returned(function, args, output)
        self.axes.returned(function, args, kwargs, output)
        dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        if getattr(function, "__name__", "") == "stack" and dim == 0 and called_by_person():
            line = own_line()
            self.stacked += [line] if line is not None and len(self.stacked) < _MOST_TENSORS else []
        reshape = reshape_of(function, args, output)
        if reshape is not None and len(self.reshapes) < _MOST_TENSORS:
            self.reshapes.append(reshape)

    def enter(self, call: Call) -> None:
        with unwatched():
            inside = call.inside
            self._index[call.number] = len(self.calls)
            line = own_line()
            self.lines_of_calls.setdefault(call.path, []).append(line)
            given = call.args[0] if call.args else None
            if isinstance(given, Tensor) and call.inside is not None:
                self.given_to[id(given)] = weakref.ref(given)
            if self.values and self.unscaled is None and isinstance(given, Tensor):
                from_input = self.maker(given) == INPUT
                self.unscaled = unscaled(call.module, call.path, given, from_input=from_input, line=line)
            self._depth[call.number] = 0 if inside is None else self._depth[inside.number] + 1
            self.calls.append(
                CallRecord(
                    number=call.number,
                    path=call.path,
                    kind=type(call.module).__name__,
                    time=call.time,
                    depth=self._depth[call.number],
                    inside=None if inside is None else inside.number,
                    settings=settings_as_written(call.module),
                    inputs=tuple(map(self.facts, _some((call.args, dict(call.kwargs))))),
                )
            )

    def leave(self, call: Call) -> None:
        with unwatched():
            outputs = _some(call.output)
            for tensor in outputs:
                # What an Identity hands on is still what it got.
                if self._makers.get(id(tensor), (None, ""))[1] != INPUT or not isinstance(call.module, nn.Identity):
                    self._makers[id(tensor)] = (weakref.ref(tensor), call.path)
            if not isinstance(call.output, Tensor):
                self.gave_no_tensor[id(call.output)] = (call.path, type(call.module).__name__, call.output)
            at = self._index[call.number]
            made = tuple(
                Output(shape=tuple(t.shape), dtype=_dtype(t), statistics=statistics_of(t) if self.values else None)
                for t in outputs
            )
            self.calls[at] = replace(self.calls[at], outputs=made, ended=True)

    def operation(self, operation: Operation) -> None:
        self.operators += 1
        name = operation.operator._schema.name.partition("::")[2]
        self.names_of_operators.add(name)
        inside = operation.inside.path if operation.inside else ""
        graph = torch.is_grad_enabled()
        with unwatched():
            given = _some((operation.args, dict(operation.kwargs)))
            self.used.update(map(id, tensors_in((operation.args, dict(operation.kwargs)))))
            for tensor in given:
                known = id(tensor) in self.names or any(id(tensor) == one.ident for one in self.foreign)
                if isinstance(tensor, nn.Parameter) and not known:
                    self.foreign.append(Foreign(tuple(tensor.shape), inside, own_line(), id(tensor)))
            made = _some(operation.output)
            if graph and made and name.endswith("_") and len(self.in_place) < _MOST_TENSORS:
                self.in_place.append(InPlace(name.strip("_"), tuple(made[0].shape), inside, own_line()))
            self.squeezes.operation(name, operation, given, made)
            self.regroups.operation(name, given, made)
            carried = name in _CHANNELS_SECOND or any(self._channels_second(t) for t in given)
            if made and made[0].dim() == 4:
                self.maps.append((inside, tuple(made[0].shape)))
            viewed = self.model_tensor(given[0]) if given and name in _VIEWS else ""
            end = End(function=_ENDS[name], path=inside, line=own_line()) if name in _ENDS else None
            if end is None and given and name in _SAME_VALUES:
                end = self.end_of(given[0])
            for tensor in made:
                if end is not None:
                    self._ends[id(tensor)] = (weakref.ref(tensor), end)
                if viewed:
                    self._views[id(tensor)] = (weakref.ref(tensor), viewed)
                self._operators_of[id(tensor)] = (weakref.ref(tensor), name)
                if carried and tensor.dim() == 3 and name not in ("transpose", "permute"):
                    self._second[id(tensor)] = weakref.ref(tensor)
            if name == "cat" and made:
                dim = operation.args[1] if len(operation.args) > 1 else operation.kwargs.get("dim", 0)
                parts = [tuple(t.shape) for t in given]
                if isinstance(dim, int) and len({len(shape) for shape in parts}) == 1:
                    self._joined[id(made[0])] = (weakref.ref(made[0]), parts, dim % made[0].dim())
            if name in _REDUCES and given and given[0].dim() > 1 and len(self.over_first) < _MOST_TENSORS:
                dims = operation.args[_REDUCES[name]] if len(operation.args) > _REDUCES[name] else None
                if 0 in (
                    one % given[0].dim()
                    for one in (dims if isinstance(dims, list | tuple) else [dims])
                    if one is not None
                ):
                    plain = name.strip("_").removeprefix("safe_").removeprefix("linalg_vector_")
                    self.over_first.append(
                        OverFirst(plain, tuple(given[0].shape), given[0].shape[0], inside, own_line())
                    )
            if name.endswith("softmax") and given and made and len(self.of_one) < _MOST_TENSORS:
                self._of_one(name, inside, given[0], operation.args[1])
            count = _spread(given, made)
            if count and len(self.spreads) < _MOST_TENSORS:
                loss = name in ("sub", "rsub") or name.endswith("_loss")
                apart = loss and given[0].untyped_storage().data_ptr() != given[1].untyped_storage().data_ptr()
                self.spreads.append(Spread(name.strip("_"), count, inside, own_line(), apart))
            if self.values and made:
                self._look(name, inside, operation, made[0], self.maker(given[0]) if given else "")

    def _look(self, name: str, inside: str, operation: Operation, made: Tensor, maker: str) -> None:
        if made.device.type == "meta" or made.numel() == 0 or not made.is_floating_point():
            return
        if name in _RELU and not bool(made.any()):
            self.all_negative.append(AllNegative(inside, maker, made.numel(), own_line()))
        if name in _RELU and made.dim() > 1:
            channel = 1 if made.dim() != 3 or self._channels_second(made) else 2
            positions = made.numel() // made.shape[channel]
            if positions >= _LEAST_POSITIONS:
                rest = [axis for axis in range(made.dim()) if axis != channel]
                dead = int((made.amax(rest) <= 0).sum())
                if dead:
                    self.dead.append(
                        DeadChannels(path=inside, dead=dead, channels=made.shape[channel], positions=positions)
                    )
            return
        share: float | None = None
        gap: float | None = None
        if name in ("sigmoid", "sigmoid_"):
            share = float(((made < _SIGMOID_END) | (made > 1 - _SIGMOID_END)).double().mean())
        elif name in ("tanh", "tanh_"):
            share = float((made.abs() > _TANH_END).double().mean())
        elif name in ("_softmax", "_safe_softmax") and made.shape[operation.args[1]] > 1:
            share = float((made.amax(operation.args[1]) > _SURE).double().mean())
            gap = _gap(operation.args[0], operation.args[1])
        if share or (gap is not None and gap > WIDE_GAP):
            function = name.strip("_").replace("safe_", "")
            self.saturations.append(
                Saturation(path=inside, function=function, share=share or 0.0, count=made.numel(), gap=gap)
            )

    def _of_one(self, name: str, inside: str, logits: Tensor, axis: int) -> None:
        """A softmax over the channels of a layer that has one: its size is not the input's."""
        axis %= max(logits.dim(), 1)
        if not logits.dim() or logits.shape[axis] != 1:
            return
        maker = self.maker(logits)
        layer = self._layers.get(maker)
        channel = logits.dim() - 1 if isinstance(layer, nn.Linear) else logits.dim() - layer_rank(layer) - 1
        own = isinstance(layer, nn.Linear) or (layer_rank(layer) > 0 and channel >= 0)
        if not own and self.operator_of(logits) in ("addmm", "mm"):
            own, channel, maker = True, 1, ""
        if own and axis == channel:
            plain = name.strip("_").replace("safe_", "")
            self.of_one.append(OfOne(plain, tuple(logits.shape), axis, inside, maker, own_line()))

    def _channels_second(self, tensor: Tensor) -> bool:
        kept = self._second.get(id(tensor))
        return kept is not None and kept() is tensor

    def facts(self, tensor: Tensor) -> TensorFacts:
        """A tensor by what is not its values."""
        return TensorFacts(
            shape=tuple(tensor.shape), dtype=_dtype(tensor), device=str(tensor.device), made_by=self.maker(tensor)
        )

    def maker(self, tensor: Tensor) -> str:
        """Path of the module that gave it out last, INPUT, or the name of the model's own tensor; "" if none did."""
        kept = self._makers.get(id(tensor))
        if kept is not None and kept[0]() is tensor:
            return kept[1]
        return self.names.get(id(tensor), "")

    def model_tensor(self, tensor: Tensor) -> str:
        """Name of the parameter or buffer that it is, or is a view of."""
        kept = self._views.get(id(tensor))
        return kept[1] if kept is not None and kept[0]() is tensor else self.names.get(id(tensor), "")

    def was_given(self, tensor: Tensor) -> bool:
        """Whether a module inside the model was given it: it goes on beside that module."""
        kept = self.given_to.get(id(tensor))
        return kept is not None and kept() is tensor

    def end_of(self, tensor: Tensor) -> End | None:
        """What function made it, through other views of the same values."""
        kept = self._ends.get(id(tensor))
        return kept[1] if kept is not None and kept[0]() is tensor else None

    def born_at(self, tensor: Tensor) -> SourceLine | None:
        """The line that made it out of nothing (torch.zeros)."""
        kept = self._born.get(id(tensor))
        return kept[1] if kept is not None and kept[0]() is tensor else None

    def joined(self, tensor: Tensor) -> tuple[list[tuple[int, ...]], int] | None:
        """(shapes of its parts, dimension) of what torch.cat made; None for any other."""
        kept = self._joined.get(id(tensor))
        return kept[1:] if kept is not None and kept[0]() is tensor else None

    def operator_of(self, tensor: Tensor) -> str:
        """The operator that made it."""
        kept = self._operators_of.get(id(tensor))
        return kept[1] if kept is not None and kept[0]() is tensor else ""


def _some(value: Any) -> list[Tensor]:
    found = []
    for tensor in tensors_in(value):
        found.append(tensor)
        if len(found) == _MOST_TENSORS:
            break
    return found


def _spread(given: Sequence[Tensor], made: Sequence[Tensor]) -> int:
    """N where (N, 1) and (N,) became (N, N), or their mean; 0 otherwise."""
    if len(given) != 2 or not made or not all(t.is_floating_point() for t in given):
        return 0
    column, row = sorted(given, key=lambda t: -t.dim())
    count = row.shape[0] if row.dim() == 1 else 0
    square = count > 1 and tuple(column.shape) == (count, 1) and tuple(made[0].shape) in ((count, count), ())
    return count if square else 0


def _gap(logits: Tensor, dim: int) -> float | None:
    """How far the greatest of a row stands above the fifth, median of rows; None where fewer are not masked."""
    if logits.shape[dim] < _RANK + 1:
        return None
    top = logits.double().topk(_RANK, dim).values
    gaps = (top.select(dim, 0) - top.select(dim, _RANK - 1)).flatten()
    gaps = gaps[gaps < _MASKED]
    return float(gaps.median()) if gaps.numel() else None


def layer_rank(layer: nn.Module | None) -> int:
    """Dimensions over which a convolution slides; 0 for what is none."""
    kinds = ((nn.Conv1d, nn.ConvTranspose1d), (nn.Conv2d, nn.ConvTranspose2d), (nn.Conv3d, nn.ConvTranspose3d))
    return next((rank for rank, pair in enumerate(kinds, 1) if isinstance(layer, pair)), 0)


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
