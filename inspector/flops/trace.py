"""One forward pass on the meta device, watched from two sides at once.

Module hooks tell who is running and with which shapes; a dispatch mode tells which operators run. No value is computed,
and nothing is patched globally: the mode is scoped to this forward and the hooks are on a copy of the model.

Meta and not real tensors: on a CPU in eval mode torch sends attention layers to one fused kernel without a formula (a
vision transformer then counts a third too little), which it does not do on meta.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode

from inspector.errors import ModelError
from inspector.flops.formulas import has_formula, is_movement, is_uncounted, macs_of, name_of
from inspector.units import human_shape


@dataclass(slots=True)
class Visit:
    """What is known of one module after the forward; modules that ran twice have the sums."""

    module: nn.Module
    path: str
    input_shape: tuple[int, ...] | None = None
    output_shape: tuple[int, ...] | None = None
    macs: int = 0
    own_macs: int = 0
    calls: int = 0
    output_numel: int = 0
    is_leaf: bool = True


@dataclass(slots=True)
class Trace:
    """visits: in the order in which modules were first entered. Counters: operator name to number of calls.

    running: the operator that is running, which is the one that failed when a forward was cut short.
    """

    visits: list[Visit] = field(default_factory=list)
    uncounted: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    running: Any = None


def to_meta(model: nn.Module, *, label: str) -> nn.Module:
    """A copy of the model on the meta device in eval mode; the model itself is left as it is.

    Parameters that are shared stay shared. label: its name in messages. Raises ModelError for what cannot be copied, or
    runs where no operator can be seen.
    """
    check_countable(model, label=label)
    # Filling the memo beforehand makes deepcopy take these instead of copying the values.
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(torch.empty_like(parameter, device="meta"), parameter.requires_grad)
    for buffer in model.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    for module in model.modules():
        # Computed anew by each forward (weight_norm before torch 2), and no leaf, which deepcopy refuses.
        for value in vars(module).values():
            if isinstance(value, Tensor) and not value.is_leaf:
                memo.setdefault(id(value), torch.empty_like(value, device="meta"))
    try:
        return copy.deepcopy(model, memo).to("meta").eval()
    except Exception as error:
        raise ModelError(
            f"{label} cannot be copied, and counting would change it: {_first_line(error)}",
            hint="Locks, open files and generators in a module cannot be copied: make them in forward.",
        ) from error


def check_countable(model: nn.Module, *, label: str) -> None:
    """Raise ModelError, naming the module, where the work cannot be seen or its size is not known yet."""
    if not isinstance(model, nn.Module):
        raise ModelError(f"{label} is a {type(model).__name__}, not a torch.nn.Module.")
    for path, module in model.named_modules():
        name = f"{label}: {path or 'the model itself'} ({type(module).__name__})"
        if isinstance(module, torch.jit.ScriptModule):
            raise ModelError(
                f"{name} is TorchScript: what it computes runs out of sight and cannot be counted.",
                hint="Build the Python module instead, without torch.jit.",
            )
        if any(map(is_lazy, (*module._parameters.values(), *module._buffers.values()))):
            raise ModelError(
                f"{name} has no shape before the first forward pass: it is a lazy module.",
                hint="Run one input through the model first.",
            )
        if hasattr(module, "_packed_params"):
            raise ModelError(
                f"{name} is quantised: its products run in integers, for which there is no formula here.",
                hint="Count the model before it was quantised.",
            )


def trace_forward(model: nn.Module, inputs: Tensor, *, label: str, more: Mapping[str, Tensor] | None = None) -> Trace:
    """Run `model(inputs, **more)` once; model: on meta, a copy that may be hooked. label: its name in messages.

    Raises ModelError naming the layer and the shapes when the forward fails.
    """
    trace = Trace()
    stack: list[Visit] = []
    visits: dict[int, Visit] = {}

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        visit = visits.get(id(module))
        if visit is None:
            visit = visits[id(module)] = Visit(module, paths[id(module)])
            trace.visits.append(visit)
        first = _first_tensor((args, kwargs))
        if visit.calls == 0:
            visit.input_shape = None if first is None else tuple(first.shape)
        visit.calls += 1
        if stack:
            stack[-1].is_leaf = False
        running_shapes.append(None if first is None else tuple(first.shape))
        stack.append(visit)

    def leave(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        visit = stack.pop()
        running_shapes.pop()
        first = _first_tensor(output)
        if visit.calls == 1:
            visit.output_shape = None if first is None else tuple(first.shape)
        visit.output_numel += 0 if first is None else first.numel()

    paths = {id(module): path for path, module in model.named_modules()}
    running_shapes: list[tuple[int, ...] | None] = []
    hooks = []
    for module in model.modules():
        hooks.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        hooks.append(module.register_forward_hook(leave, with_kwargs=True))
    try:
        with torch.no_grad(), _OperatorCounter(trace, stack):
            model(inputs, **(more or {}))
    except Exception as error:  # a forward may raise anything
        where = (stack[-1], running_shapes[-1]) if stack else None
        if _needs_values(trace.running, error):
            raise _values_needed(label, where, trace.running) from error
        raise _explained(label, tuple(inputs.shape), where, error) from error
    finally:
        for hook in hooks:
            hook.remove()
    return trace


class _OperatorCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # its __init_subclass__
    """Adds the MACs of each operator to the modules that are running, and lists the operators without a formula."""

    def __init__(self, trace: Trace, stack: list[Visit]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._trace, self._stack = trace, stack

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not has_formula(func):
            # Composite operators are counted by the operators they are made of.
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        self._trace.running = func
        output = func(*args, **kwargs)
        self._trace.running = None
        macs = macs_of(func, args, kwargs, output)
        if macs is not None:
            self._add(macs)
        elif is_uncounted(func):
            self._trace.uncounted[name_of(func)] += 1
        elif not is_movement(func):
            self._trace.others[name_of(func)] += 1
        return output

    def _add(self, macs: int) -> None:
        if not self._stack:
            return
        self._stack[-1].own_macs += macs
        # A module may be running twice at once (recursion); it did the work once.
        for visit in {id(v): v for v in self._stack}.values():
            visit.macs += macs


def _first_tensor(value: Any) -> Tensor | None:
    """The first tensor inside nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return value
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, tuple | list):
        parts = value
    for part in parts:
        found = _first_tensor(part)
        if found is not None:
            return found
    return None


_Where = tuple[Visit, tuple[int, ...] | None] | None


def _needs_values(operator: Any, error: Exception) -> bool:
    """Whether the forward failed because shapes alone do not determine what it does."""
    tags = getattr(operator, "tags", ())
    if torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags:
        return True
    return (operator is not None and isinstance(error, NotImplementedError)) or "data-dependent" in str(error)


def _values_needed(label: str, where: _Where, operator: Any) -> ModelError:
    place = f" in {where[0].path or 'the model itself'} ({type(where[0].module).__name__})" if where else ""
    which = "an operation" if operator is None else name_of(operator)
    return ModelError(
        f"The cost of {label} depends on what is in the picture: {which}{place} gives as many results as it finds, so "
        "shapes alone do not tell how much work follows.",
        hint="Detection models are like this; their backbone alone can be counted.",
    )


def _explained(label: str, shape: tuple[int, ...], where: _Where, error: Exception) -> ModelError:
    """The error of a forward as a sentence: which layer got what, and what it is made for."""
    says = f"{label} does not take an input of {human_shape(shape)}"
    hint = "Try the input size that the model was trained with."
    if isinstance(error, TypeError):
        hint = "Only models that take one tensor can be counted here."
    if where is not None:
        visit, got = where
        name = visit.path or "the model itself"
        layer = f"{name} ({_described(visit.module)})"
        says += f": the forward pass failed in {layer}" + ("" if got is None else f", which got {human_shape(got)}")
        wants = getattr(visit.module, "in_channels", None)
        if isinstance(wants, int) and got is not None and len(got) >= 2 and got[1] != wants:
            hint = f"{name} takes {wants} {'channel' if wants == 1 else 'channels'}, not {got[1]}."
        if isinstance(visit.module, nn.Conv3d) and got is not None and len(got) == 4:
            hint = "It takes clips (batch x channels x frames x height x width), not pictures."
    return ModelError(f"{says}: {_first_line(error)}", hint=hint)


def _described(module: nn.Module) -> str:
    """Class and weight shape: "Conv2d, weight 64x3x7x7"."""
    weight = module._parameters.get("weight")
    kind = type(module).__name__
    return kind if weight is None else f"{kind}, weight {human_shape(tuple(weight.shape))}"


def _first_line(error: Exception) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    text = text if len(text) <= 200 else text[:199] + "…"
    return text if text.endswith((".", "!", "…")) else text + "."
