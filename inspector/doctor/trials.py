"""Would it run if the input were another? Tried out, on the meta device where that tells, else with numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from inspector.forward.bare import bare_copy
from inspector.forward.watch import ForwardError, Listener, tensors_in, watch

_MOST_TRIALS = 60
_MOST_WITH_NUMBERS = 24
# In an input that is still run with numbers: a batch of four at 512x512.
MOST_NUMBERS = 4 * 3 * 512 * 512


@contextmanager
def as_it_was(model: nn.Module) -> Iterator[None]:
    """Gives back buffers (those that a forward assigns anew, too), training flags and torch's random state."""
    flags = [(module, module.training) for module in model.modules()]
    # A lazy module's first pass makes its buffers, for good.
    named = [(module, dict(module._buffers)) for module in model.modules() if not holds_lazy(module)]
    buffers = [
        (buffer, buffer.detach().clone()) for buffer in model.buffers() if not (buffer.is_meta or is_lazy(buffer))
    ]
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            for module, training in flags:
                module.training = training
            for module, own in named:
                for name in own.keys() & module._buffers.keys():
                    module._buffers[name] = own[name]
            with torch.no_grad():
                for buffer, before in buffers:
                    if buffer.shape == before.shape:
                        buffer.copy_(before)


def holds_lazy(module: nn.Module) -> bool:
    """Whether it has tensors that its first pass makes."""
    return any(t is not None and is_lazy(t) for t in (*module._parameters.values(), *module._buffers.values()))


def copied(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with tensors of their own: a forward may change its input in place."""

    def one(tensor: Tensor) -> Tensor:
        if isinstance(tensor, nn.Parameter) or is_lazy(tensor):
            return tensor
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    own: tuple[tuple[Any, ...], dict[str, Any]] = tree_map_only(Tensor, one, (tuple(args), dict(kwargs)))
    return own


#: (name of a function of torch, its arguments) -> others for it; None to leave them.
Replace = Callable[[str, Sequence[Any], Mapping[str, Any]], tuple[Sequence[Any], Mapping[str, Any]] | None]


class _Replaced(TorchFunctionMode):
    """hits: how many calls it changed."""

    def __init__(self, replace: Replace) -> None:
        super().__init__()
        self._replace, self.hits = replace, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = self._replace(getattr(func, "__name__", ""), args, kwargs or {})
        if made is None:
            return func(*args, **(kwargs or {}))
        self.hits += 1
        return func(*made[0], **made[1])


class Trials:
    """Runs of one model with changed inputs; the model is left as it is."""

    def __init__(self, model: nn.Module) -> None:
        self._model, self._left, self._numbers_left = model, _MOST_TRIALS, _MOST_WITH_NUMBERS
        self._bare: nn.Module | None = None
        self._bare_failed = False

    @property
    def left(self) -> bool:
        """Whether another one with numbers may be run."""
        return self._numbers_left > 0

    def runs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """By shapes alone where these refuse it, else with numbers: on meta some layers look at no type or width.

        As many samples have to come out as went in.
        """
        if self._left <= 0:
            return False
        self._left -= 1
        bare = self._on_meta()
        if bare is None:
            return self.runs_with_numbers(args, kwargs)
        given = tree_map_only(Tensor, lambda tensor: tensor.to("meta"), (tuple(args), dict(kwargs)))
        if not _passes(bare, given[0], given[1]):
            return False
        tensors = [*tensors_in((tuple(args), dict(kwargs)))]
        if any(tensor.is_meta for tensor in tensors) or sum(t.numel() for t in tensors) > MOST_NUMBERS:
            return True
        return self.runs_with_numbers(args, kwargs)

    def runs_with_numbers(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, training: bool | None = None, samples: bool = True
    ) -> bool:
        """With the model itself, in the mode it is in or the one that is asked for. samples: as many pictures have to
        come out as went in; a recurrent layer's time may stand first."""
        if self._numbers_left <= 0:
            return False
        self._numbers_left -= 1
        with as_it_was(self._model):
            if training is not None:
                self._model.train(training)
            return _passes(self._model, args, kwargs, samples=samples)

    def error_with_numbers(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ForwardError | None:
        """What it ends in, in the mode it is in; None where it runs through. To be asked only where a trial is left."""
        self._numbers_left -= 1
        with as_it_was(self._model):
            try:
                watch(self._model, *copied(args, kwargs), Listener())
            except ForwardError as raised:
                return raised
        return None

    def runs_padded(self, paths: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """With output_padding=1 in these transposed convolutions, by shapes alone."""
        bare = self._on_meta()
        if bare is None or self._left <= 0:
            return False
        self._left -= 1
        given = tree_map_only(Tensor, lambda tensor: tensor.to("meta"), (tuple(args), dict(kwargs)))
        layers = [bare.get_submodule(path) for path in paths]
        before = [layer.output_padding for layer in layers]
        for layer in layers:
            layer.output_padding = (1,) * len(layer.stride)  # type: ignore[arg-type]
        try:
            return _passes(bare, given[0], given[1])
        finally:
            for layer, kept in zip(layers, before, strict=True):
                layer.output_padding = kept

    def runs_set(
        self, module: nn.Module, name: str, value: Any, given: tuple[Sequence[Any], Mapping[str, Any]]
    ) -> bool:
        """With an attribute of one module set otherwise (batch_first=True), with numbers."""
        before = getattr(module, name)
        setattr(module, name, value)
        try:
            return self.runs_with_numbers(*given)
        finally:
            setattr(module, name, before)

    def runs_given(
        self,
        module: nn.Module,
        change: Callable[[Tensor], Tensor | None],
        given: tuple[Sequence[Any], Mapping[str, Any]],
    ) -> bool:
        """With what one module is given first changed, None to leave it, with numbers."""

        def before(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
            made = change(args[0]) if args and isinstance(args[0], Tensor) else None
            return None if made is None else (made, *args[1:])

        hook = module.register_forward_pre_hook(before)
        try:
            return self.runs_with_numbers(*given, samples=False)
        finally:
            hook.remove()

    def runs_batch_first(self, modules: Sequence[nn.Module], given: tuple[Sequence[Any], Mapping[str, Any]]) -> bool:
        """With batch_first=True in all of these, with numbers."""
        before = [(module, module.batch_first) for module in modules]
        for module in modules:
            module.batch_first = True  # type: ignore[assignment]
        try:
            return self.runs_with_numbers(*given)
        finally:
            for module, kept in before:
                module.batch_first = kept

    def runs_with_gradients(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """With numbers, and gradients recorded."""
        if self._numbers_left <= 0:
            return False
        self._numbers_left -= 1
        with as_it_was(self._model):
            return _passes(self._model, args, kwargs, grad=True)

    def runs_replaced(self, replace: Replace, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """With what functions of torch are given changed by `replace`, with numbers; False where it changed nothing."""
        mode = _Replaced(replace)
        with mode:
            return self.runs_with_numbers(args, kwargs) and mode.hits > 0

    def _on_meta(self) -> nn.Module | None:
        """A copy without numbers; None where there can be none."""
        if self._bare is None and not self._bare_failed:
            try:
                self._bare = bare_copy(self._model)
            except Exception:  # noqa: BLE001  whatever a person's own module holds may refuse to be copied
                self._bare_failed = True
        return self._bare


def _passes(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, grad: bool = False, samples: bool = True
) -> bool:
    try:
        output = watch(model, *copied(args, kwargs), Listener(), grad=grad)
    except ForwardError:
        return False
    # view(-1, 400) makes more samples of a larger picture, and raises nothing.
    given = next(tensors_in((tuple(args), dict(kwargs))), None)
    if not samples or given is None or given.dim() < 4 or not isinstance(output, Tensor) or output.dim() == 0:
        return True
    return output.shape[0] == given.shape[0]
