"""Run a model once and tell a listener of each module's call and each operator's, in order.

Hooks tell which module runs; a dispatch mode tells which operators. Both are on for this one pass only, and torch is
patched nowhere. On the meta device no value is computed; tensors that the model makes on the CPU meanwhile (a position
index, a constant kept as an attribute) are taken as meta tensors where they meet one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from inspector.forward.recall import Recall


@dataclass(slots=True, eq=False)
class Call:
    """One call of one module.

    number: order in which calls began, from 0. path: the module's first name in the model. time: which call of this
    module it is, from 1. inside: the call it was made from. args, kwargs, output: what went in and came out, as they
    are; output is None until it ends.
    """

    number: int
    module: nn.Module
    path: str
    time: int
    inside: Call | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    output: Any = None
    made_calls: bool = False


@dataclass(slots=True, eq=False)
class Operation:
    """One call of an operator (torch._ops.OpOverload).

    inside: the innermost module that runs. likeness: equal for calls with equal shapes, types and settings, None where
    there is more to it.
    """

    operator: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    output: Any
    inside: Call | None
    likeness: Hashable | None = None


class Listener:
    """What hears of a pass; each method does nothing unless it is overridden."""

    def function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A function of torch's Python interface is about to run (torch.einsum)."""

    def returned(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        """It has run; what it gave knows by now whether it wants a gradient."""

    def enter(self, call: Call) -> None:
        """A module is about to run."""

    def operation(self, operation: Operation) -> None:
        """An operator has run."""

    def leave(self, call: Call) -> None:
        """A module has run; call.output is what it gave."""


@dataclass(slots=True, eq=False)
class ForwardError(Exception):
    """The pass ended with an error of the model's.

    error: as it was raised. calls: those that were running, outermost first. operator: the one that failed; None where
    it was the model's own code. operands: what that operator was given.
    """

    error: BaseException
    calls: tuple[Call, ...]
    operator: Any = None
    operands: tuple[tuple[Any, ...], Mapping[str, Any]] = field(default=((), {}))

    def __str__(self) -> str:
        return str(self.error)


def watch(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    listener: Listener,
    *,
    whole: Callable[[Any], bool] = lambda operator: False,
    grad: bool = False,
    one_device: bool = True,
) -> Any:
    """Run `model(*args, **kwargs)` once and give its output.

    model: gets hooks for as long as it runs; TorchScript takes none, and is told by its operators alone. whole: which
    composite operators are told as one and not by their parts. grad: record for a backward pass. one_device: operands
    follow those on meta, else the mix is torch's error. Raises ForwardError for whatever the pass raises.
    """
    running: list[Call] = []
    times: dict[int, int] = {}
    paths = {id(module): path for path, module in model.named_modules()}
    numbers = iter(range(1 << 62))

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        time = times[id(module)] = times.get(id(module), 0) + 1
        inside = running[-1] if running else None
        if inside is not None:
            inside.made_calls = True
        call = Call(next(numbers), module, paths.get(id(module), ""), time, inside, args, kwargs)
        running.append(call)
        listener.enter(call)

    def leave(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        # An inner module whose error the model caught never left.
        while running and running[-1].module is not module:
            running.pop()
        if not running:
            return
        call = running.pop()
        call.output = output
        listener.leave(call)

    mode = _Operators(listener, running, whole, one_device)
    hooks: list[Any] = []
    try:
        for module in model.modules():
            if not isinstance(module, torch.jit.ScriptModule):
                hooks.append(module.register_forward_pre_hook(enter, with_kwargs=True))
                hooks.append(module.register_forward_hook(leave, with_kwargs=True))
    except Exception as error:  # a model may be without what every module has
        for hook in hooks:
            hook.remove()
        raise ForwardError(error, ()) from error
    try:
        with torch.set_grad_enabled(grad), _Functions(listener), mode:
            return model(*args, **kwargs)
    except Exception as error:  # a forward may raise anything
        raise ForwardError(error, tuple(running), mode.running, mode.operands) from error
    finally:
        for hook in hooks:
            hook.remove()


class _Functions(TorchFunctionMode):
    """Also keeps attention layers from their fused kernel on the CPU, whose parts nobody sees."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self._listener = listener

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._listener.function(func, args, kwargs or {})
        output = func(*args, **(kwargs or {}))
        self._listener.returned(func, args, kwargs or {}, output)
        return output


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # its __init_subclass__
    """running, operands: the operator at work and what it got; they stay after it fails."""

    def __init__(self, listener: Listener, calls: list[Call], whole: Callable[[Any], bool], one_device: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._listener, self._calls, self._whole, self._one_device = listener, calls, whole, one_device
        self.running: Any = None
        self._recall = Recall()
        self.operands: tuple[tuple[Any, ...], Mapping[str, Any]] = ((), {})

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self._whole(func):
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        if self._one_device:
            args, kwargs = on_one_device(func, args, kwargs)
        self.running, self.operands = func, (args, kwargs)
        output = self._recall.run(func, args, kwargs)
        self.running, self.operands = None, ((), {})
        inside = self._calls[-1] if self._calls else None
        self._listener.operation(Operation(func, args, kwargs, output, inside, self._recall.key))
        return output


class ValuesNeeded(RuntimeError):
    """Values would be written that nobody has computed."""


def on_one_device(operator: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Operands on the meta device where one of them is there."""
    if all(isinstance(value, Tensor) and value.is_meta for value in args[:2]) and len(args) < 3 and not kwargs:
        return args, kwargs
    places = {tensor.device.type for tensor in tensors_in((args, kwargs))}
    if "meta" not in places or len(places) == 1:
        return args, kwargs
    written = [
        argument for argument in operator._schema.arguments if argument.alias_info and argument.alias_info.is_write
    ]
    for argument, value in zip(operator._schema.arguments, args, strict=False):
        if argument in written and isinstance(value, Tensor) and value.device.type != "meta":
            raise ValuesNeeded("a tensor with values is overwritten by one whose values are not computed")
    on_meta = tree_map_only(Tensor, lambda t: t if t.device.type == "meta" else t.to("meta"), (args, dict(kwargs)))
    return on_meta[0], on_meta[1]


_NO_TENSORS = frozenset({int, float, bool, str, type(None), torch.dtype, torch.device, torch.Size})


def tensors_in(value: Any, *, most: int = 10_000) -> Iterator[Tensor]:
    """The tensors inside nested tuples, lists, mappings and objects with such attributes, in order.

    Of objects (the outputs of other libraries) the attributes are looked at, one level deep.
    """
    waiting, seen = [value], 0
    while waiting and seen < most:
        one = waiting.pop()
        seen += 1
        kind = type(one)
        if kind in _NO_TENSORS:
            continue
        if kind is Tensor or isinstance(one, Tensor):
            yield one
        elif kind is tuple or kind is list:
            waiting.extend(one[::-1])
        elif isinstance(one, Mapping):
            waiting.extend(reversed(list(one.values())))
        elif isinstance(one, tuple | list | set | frozenset):
            waiting.extend(reversed(list(one)))
        elif hasattr(one, "__dataclass_fields__"):
            waiting.extend(reversed([getattr(one, name, None) for name in one.__dataclass_fields__]))
