"""How much memory one forward pass, or one step of training, holds at its peak: followed on the meta device.

Every storage that an operator makes is there until nothing refers to it any more, as on a real device, so the sum of
what is there after each operator has the same peak; only what kernels use inside themselves (workspaces of
convolutions) and what an allocator keeps in reserve come on top. Attention by scaled_dot_product_attention is taken as
fused, as torch runs it on a CPU and on a GPU: its table of scores is never there as a whole.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from inspector.errors import UsageError
from inspector.flops.memory_report import OPTIMIZERS, PRECISIONS, MemoryReport
from inspector.flops.refusals import explained
from inspector.forward.watch import ForwardError, on_one_device, tensors_in

_STEPS = 2  # The optimizer's state is made by the first step: the second shows the peak.


def peak_memory(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    label: str,
    optimizer: str = "",
    precision: str = "float32",
    foreach: bool = False,
) -> MemoryReport:
    """The most bytes held at one time.

    model, args, kwargs: on the meta device; the model is changed, so give a copy. optimizer: "" for inference, or one
    of OPTIMIZERS for a step of training with it. precision: one of PRECISIONS, for weights, inputs and all that follows
    from them. foreach: whether the optimizer works on all parameters at once, as it does on a GPU.
    Raises UsageError for names that are not known, and ModelError where the pass fails or needs values.
    """
    if precision not in PRECISIONS:
        raise UsageError(f'No precision is named "{precision}".', hint=f"There are {', '.join(PRECISIONS)}.")
    if optimizer and optimizer not in OPTIMIZERS:
        raise UsageError(f'No optimizer is named "{optimizer}".', hint=f"There are {', '.join(OPTIMIZERS)}.")
    model.to(getattr(torch, precision)).train(bool(optimizer))
    given = [_cast(value, precision) for value in args]
    named = {name: _cast(value, precision) for name, value in (kwargs or {}).items()}
    stepper = _optimizer(model, optimizer, foreach) if optimizer else None
    held = _Held(model)
    held.take((list(model.parameters()), list(model.buffers()), given, named))
    gradients = 0
    for _ in range(_STEPS if stepper else 1):
        held.peak = 0
        gradients = _step(model, given, named, held, stepper, label)
    return MemoryReport(
        label=label,
        optimizer=optimizer,
        precision=precision,
        input_shape=tuple(given[0].shape),
        peak_nbytes=held.peak,
        at=held.at,
        parameter_nbytes=_nbytes(model.parameters()),
        buffer_nbytes=_nbytes(model.buffers()),
        gradient_nbytes=gradients,
        optimizer_nbytes=0 if stepper is None else _nbytes(tensors_in(dict(stepper.state), most=1_000_000)),
        input_nbytes=_nbytes(tensors_in((given, named))),
    )


def _step(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], held: _Held, stepper: Any, label: str
) -> int:
    """One pass, with an optimizer one step; the bytes of all gradients."""
    held.stage = ""

    def entered(path: str) -> Any:
        def enter(*_: Any) -> None:
            held.stage = path

        return enter

    hooks = [module.register_forward_pre_hook(entered(path)) for path, module in model.named_modules() if path]
    try:
        with torch.set_grad_enabled(stepper is not None), _FusedAttention(), held:
            output = model(*args, **kwargs)
            if stepper is None:
                return 0
            held.stage = "the backward pass"
            losses = [t.float().mean() for t in tensors_in(output) if t.requires_grad]
            del output
            if losses:
                torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
            del losses
            gradients = _nbytes(p.grad for p in model.parameters() if p.grad is not None)
            held.stage = "the optimizer's step"
            stepper.step()
            stepper.zero_grad(set_to_none=True)
    except Exception as error:  # a forward may raise anything
        raise explained(label, tuple(args[0].shape), ForwardError(error, (), held.running)) from error
    finally:
        for hook in hooks:
            hook.remove()
    return gradients


def _optimizer(model: nn.Module, name: str, foreach: bool) -> Any:
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise UsageError("No parameter of the model takes a gradient.", hint="Unfreeze one, or ask for inference.")
    if name.startswith("sgd"):
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9 if name == "sgd-momentum" else 0, foreach=foreach)
    made = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    return made(parameters, foreach=foreach)


def _cast(value: Any, precision: str) -> Any:
    return value.to(getattr(torch, precision)) if isinstance(value, Tensor) and value.is_floating_point() else value


def _nbytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the storages behind tensors, each once."""
    return sum({s._cdata: s.nbytes() for s in (tensor.untyped_storage() for tensor in tensors)}.values())


class _Held(TorchDispatchMode):  # type: ignore[no-untyped-call]  # its __init_subclass__
    """Adds up the storages that are there. peak: the most so far; at: what ran then. running: the operator at work."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self.at = self.stage = ""
        self.running: Any = None
        self._there: dict[int, tuple[Any, int]] = {}

    def take(self, value: Any) -> None:
        """Count the storages of tensors that are new."""
        for tensor in tensors_in(value, most=1_000_000):
            storage = tensor.untyped_storage()
            number = storage._cdata
            if number in self._there or not storage.nbytes():
                continue

            def gone(_: Any, number: int = number) -> None:
                self.now -= self._there.pop(number)[1]

            self._there[number] = weakref.ref(storage, gone), storage.nbytes()
            self.now += storage.nbytes()
        if self.now > self.peak:
            self.peak, self.at = self.now, self.stage

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        args, kwargs = on_one_device(func, args, kwargs or {})
        self.running = func
        output = func(*args, **kwargs)
        self.running = None
        self.take(output)
        return output


class _FusedAttention(TorchFunctionMode):
    """Attention as its fused kernels hold it: query, key, value, result, and one number a row for the backward pass."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            operands = [*args, *(kwargs[name] for name in ("query", "key", "value")[len(args) :])]
            return _Fused.apply(*operands[:3])
        return func(*args, **kwargs)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        # Laid out as (batch, rows, heads, width), which all fused kernels give.
        shape = (*query.shape[:-1], value.shape[-1])
        output = query.new_empty(shape) if query.dim() != 4 else _rows_first(query, shape)
        rows = query.new_empty(query.shape[:-1], dtype=torch.float32)
        ctx.save_for_backward(query, key, value, output, rows)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        query, key, value, _, _ = ctx.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _rows_first(query: Tensor, shape: Sequence[int]) -> Tensor:
    batch, heads, rows, width = shape
    return query.new_empty((batch, rows, heads, width)).transpose(1, 2)
