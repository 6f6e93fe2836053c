"""What is behind a layer, run on changed outputs of it, without what is before it.

One forward of a picture is recorded: every outermost module call that is finished before the layer's is kept with its
output. In a replay those calls give back what they gave, as often as there are changed outputs, and only what lies
behind the layer is computed. Whether that is right for this model is tried out with the unchanged output; where it is
not (a model that computes before the layer outside of modules, from the batch's size), everything is run each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import Place, first_tensor, like_the_model, replace_tensor
from inspector.cam.engine.tensors import working_precision
from inspector.cam.runnable import mixes_pictures
from inspector.cam.targets.readings import Reading, class_scores, tensors_in
from inspector.errors import NoSuchLayer

# Two ways to compute one answer differ by rounding alone: so many units of it, but never a twentieth of the answer.
_ROUNDING = 1000
_MOST = 0.05


@dataclass(slots=True)
class _Call:
    """A finished module call. depth: how many calls it stood in."""

    module: nn.Module
    number: int
    depth: int
    output: object


class Replay:
    """Made inside a scene, for one picture (1, C, H, W), which has this index in its batch.

    output: the layer's own, as it came, (1, ...). logits: (1, classes). shortened: whether what is before the layer is
    left out.
    """

    def __init__(
        self, model: nn.Module, place: Place, picture: Tensor, index: int = 0, read: Reading = class_scores
    ) -> None:
        self._model = model
        self._read = read
        self._index = index
        self._picture = like_the_model(picture, model)
        self._layer = model.get_submodule(place.path)
        self._place = place
        self._alone = mixes_pictures(model)
        self._before, self._whole = self._record()
        found = first_tensor(self._whole)
        if found is None:
            raise NoSuchLayer(f"Layer {place.path!r} puts out no tensor that could be changed.")
        self.output: Tensor = found
        # Copies of all that is before the layer can cost more than what is behind it. Views do, unless written into.
        self.shortened, self._copied = True, False
        if not self._is_right():
            self._copied = True
            self.shortened = self._is_right()

    def answer(self, outputs: Tensor, *, grad: bool = False) -> Tensor:
        """(M, classes) for M outputs of the layer (M, ...), at least float32. grad: in their graph."""
        count = outputs.shape[0]
        if count > 1 and self._alone:
            return torch.cat([self.answer(output[None], grad=grad) for output in outputs])
        stubs: dict[nn.Module, dict[int, object]] = {}
        if self.shortened:
            for call in self._before:
                again = _repeat(call.output, count) if self._copied or count == 1 else _spread(call.output, count)
                stubs.setdefault(call.module, {})[call.number] = again
        whole = _repeat(self._whole, count)
        repeated = first_tensor(whole)
        assert repeated is not None
        # What is put back is a clone: an in-place operation behind the layer must not write into the caller's.
        stubs.setdefault(self._layer, {})[self._place.call] = replace_tensor(whole, repeated, outputs.clone())
        with torch.set_grad_enabled(grad), _answering(stubs):
            answer = self._model(self._picture.expand(count, -1, -1, -1).contiguous())
            return working_precision(self._read(answer, [self._index] * count))

    def _record(self) -> tuple[list[_Call], object]:
        """(outermost calls finished before the layer's began, what the layer put out)."""
        finished: list[_Call] = []
        starts: list[tuple[nn.Module, int]] = []
        counts: dict[nn.Module, int] = {}
        wanted: list[object] = []

        def enter(module: nn.Module, _args: tuple[object, ...]) -> None:
            starts.append((module, len(finished)))

        def leave(module: nn.Module, _args: tuple[object, ...], output: object) -> None:
            _, start = starts.pop()
            number = counts.get(module, 0)
            counts[module] = number + 1
            if wanted:
                return
            # The calls inside are part of this one.
            del finished[start:]
            # A copy: what follows may write into it.
            copy = _map(output, lambda tensor: tensor.detach().clone())
            if module is self._layer and number == self._place.call:
                wanted.append(copy)
            else:
                finished.append(_Call(module, number, len(starts), copy))

        handles = [module.register_forward_pre_hook(enter) for module in self._model.modules()]
        handles += [module.register_forward_hook(leave) for module in self._model.modules()]
        try:
            with torch.no_grad():
                self.logits = working_precision(self._read(self._model(self._picture), [self._index]))
        finally:
            for handle in handles:
                handle.remove()
        if not wanted:
            raise NoSuchLayer(f"Layer {self._place.path!r} was not reached.")
        return finished, wanted[0]

    def _is_right(self) -> bool:
        """Whether the shortened run of the unchanged output gives the answer of the whole, for one and for three.

        And writes into nothing that was kept.
        """
        kept = [tensor for call in self._before for tensor in tensors_in(call.output)]
        versions = [tensor._version for tensor in kept]
        share = min(_ROUNDING * torch.finfo(self.output.dtype).eps, _MOST)
        most = share * float(self.logits.abs().max().clamp_min(1e-12))
        try:
            for count in (1, 3):
                got = self.answer(self.output.expand(count, *self.output.shape[1:]))
                # Written so that NaN is not right either.
                if not float((got - self.logits).abs().max()) <= most:
                    return False
        except (RuntimeError, TypeError, ValueError, AttributeError, IndexError):
            return False
        return versions == [tensor._version for tensor in kept]


@contextmanager
def _answering(stubs: dict[nn.Module, dict[int, object]]) -> Iterator[None]:
    """Inside, these calls of these modules give back what is given here; other calls of them run."""
    changed: list[nn.Module] = []
    try:
        for module, outputs in stubs.items():
            if "forward" in module.__dict__:
                raise RuntimeError("forward was replaced already")
            module.forward = _stub(module, outputs)
            changed.append(module)
        yield
    finally:
        for module in changed:
            del module.forward


def _stub(module: nn.Module, outputs: dict[int, object]) -> Callable[..., object]:
    original = module.forward
    count = 0

    def forward(*args: object, **kwargs: object) -> object:
        nonlocal count
        number, count = count, count + 1
        return outputs[number] if number in outputs else original(*args, **kwargs)

    return forward


def _repeat(value: object, count: int) -> object:
    """The tensors of one picture for `count` of them; tables without a picture's dimension only once."""
    return _map(
        value,
        lambda tensor: (
            # Not `contiguous`, which copies nothing where one is asked for.
            tensor.expand(count, *tensor.shape[1:]).clone(memory_format=torch.contiguous_format)
            if tensor.dim() and tensor.shape[0] == 1
            else tensor.clone()
        ),
    )


def _spread(value: object, count: int) -> object:
    """The same in no more memory: every picture is the one kept, and torch refuses to write into them all at once."""
    return _map(
        value,
        lambda tensor: (
            tensor.expand(count, *tensor.shape[1:]) if tensor.dim() and tensor.shape[0] == 1 else tensor.clone()
        ),
    )


def _map(value: object, change: Callable[[Tensor], Tensor]) -> object:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        remake: Callable[..., object] = type(value)
        return remake(*(_map(item, change) for item in value))
    if isinstance(value, tuple | list):
        items = [_map(item, change) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value
