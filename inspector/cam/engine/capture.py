"""What a layer put out, and what the score thinks of it: one forward, one backward, nothing left behind.

A context manager lends the model: evaluation mode, frozen parameters, forward hooks on the asked layers. Each hook
makes its layer's output the start of the graph and hands a clone on, so that an in-place operation behind the layer
cannot reach what was kept, no activation before the layer is saved, and no weight gradient is ever computed.

`torch.autograd.grad` is taken with respect to the kept outputs only, hence `.grad` of the caller's parameters is
never touched. Everything else that is borrowed is put back, also when the forward raises.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, is_dataclass, replace
from dataclasses import fields as dataclass_fields

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from inspector.cam.runnable import differentiating, modules_of, refuse_program, running_eagerly
from inspector.cam.targets.readings import Reading, class_scores, tensors_in
from inspector.errors import ExplainError, LayerNotSpatial, NoSuchLayer


@dataclass(frozen=True, slots=True)
class Place:
    """One call of one module: a shared module ("relu") is called several times in one forward.

    path: dotted module name, "" for the model itself. call: counted from 0 within one forward.
    """

    path: str
    call: int = 0


Hook = Callable[[nn.Module, tuple[object, ...], object], object]


class Capture:
    """The lent model with what its last forward left at the asked places.

    model: unwrapped. outputs: place -> (N, ...) tensor in the graph of the last forward, the model's own dtype.
    """

    def __init__(self, model: nn.Module, places: Sequence[Place], read: Reading) -> None:
        self.model = model
        self.read = read
        self.places = tuple(dict.fromkeys(places))
        self.outputs: dict[Place, Tensor] = {}
        # Share of what the network is given, down and across, that shows the picture: detectors pad below and right.
        self.shown = (1.0, 1.0)
        self._calls: dict[str, int] = {}

    def forward(self, batch: Tensor) -> Tensor:
        """Run the model. batch: (N, C, H, W), moved to the model's device and dtype. Returns (N, classes) scores.

        Raises ExplainError when the reading finds no scores in the answer, NoSuchLayer when an asked place was never
        reached.
        """
        self.outputs = {}
        self._calls = dict.fromkeys((place.path for place in self.places), 0)
        answer = self.model(like_the_model(batch, self.model))
        for place in self.places:
            if place not in self.outputs:
                count = self._calls[place.path]
                if count > place.call:
                    raise LayerNotSpatial(
                        f"Layer {place.path!r} puts out no floating-point numbers, so there is nothing to explain.",
                        hint="Of a quantised model take the one that it was made from.",
                    )
                raise NoSuchLayer(
                    f"Layer {place.path!r} was called {count} times in one forward pass, so it has no call number "
                    f"{place.call}.",
                    hint="Calls are counted from 0." if count else "Choose a layer that the forward pass reaches.",
                )
        return self.read(answer, range(batch.shape[0]))

    def gradients(
        self, score: Tensor, outputs: Mapping[Place, Tensor] | None = None, *, keep_graph: bool = False
    ) -> dict[Place, Tensor]:
        """d score / d output at each place; zeros where the score does not depend on it.

        score: a scalar. outputs: of the forward that the score is from, the last one if None.
        """
        starts = self.outputs if outputs is None else outputs
        if not starts or not score.requires_grad:
            return {place: torch.zeros_like(start) for place, start in starts.items()}
        with differentiating():
            found = torch.autograd.grad(score, list(starts.values()), retain_graph=keep_graph, allow_unused=True)
        return {
            place: torch.zeros_like(start) if gradient is None else gradient
            for (place, start), gradient in zip(starts.items(), found, strict=True)
        }

    def _hook(self, path: str) -> Hook:
        def keep(_module: nn.Module, _args: tuple[object, ...], output: object) -> object:
            place = Place(path, self._calls.get(path, 0))
            self._calls[path] = place.call + 1
            if place not in self.places:
                return None
            tensor = first_tensor(output)
            if tensor is None or not tensor.is_floating_point():
                return None
            # The first clone is ours alone: a module that returns its input (nn.Identity, in-place ReLU) shares it
            # with others, whose gradients and in-place writes are not this layer's.
            start = tensor.clone() if tensor.requires_grad else tensor.detach().clone().requires_grad_()
            self.outputs[place] = start
            return replace_tensor(output, tensor, start.clone())

        return keep

    def _prepared(self, _module: nn.Module, _args: tuple[object, ...], output: object) -> None:
        found = prepared_sizes(output)
        if found is not None:
            (height, width), (padded_height, padded_width) = found
            self.shown = (height / padded_height, width / padded_width)


Size = tuple[int, int]


def own_preparation(model: nn.Module) -> nn.Module | None:
    """What resizes and pads pictures inside of a detector as torchvision builds them, None for other models."""
    return next((child for child in model.children() if hasattr(child, "size_divisible")), None)


def prepared_sizes(output: object) -> tuple[Size, Size] | None:
    """((height, width) of the first picture, the same with its padding) of what such a preparation puts out."""
    images = output[0] if isinstance(output, tuple) and output else output
    tensors, sizes = getattr(images, "tensors", None), getattr(images, "image_sizes", None)
    if not isinstance(tensors, Tensor) or tensors.dim() != 4 or not sizes:
        return None
    height, width = sizes[0]
    return (int(height), int(width)), (tensors.shape[2], tensors.shape[3])


@contextmanager
def capture(model: nn.Module, places: Iterable[Place] = (), *, read: Reading = class_scores) -> Iterator[Capture]:
    """Lend the model for explaining; grad mode is on inside, whatever the caller has switched off.

    read: how the answer becomes scores.

    Raises NoSuchLayer for a path that the model does not have. Restored at the end, also after an exception:
    training flag per module, requires_grad, hooks, buffers (also replaced ones), random state.
    """
    bare = unwrap(model)
    refuse_program(bare)
    lent = Capture(bare, tuple(places), read)
    with ExitStack() as stack:
        stack.enter_context(borrowed(bare))
        for path in dict.fromkeys(place.path for place in lent.places):
            handle = _module_at(bare, path).register_forward_hook(lent._hook(path))
            stack.callback(handle.remove)
        own = own_preparation(bare)
        if own is not None:
            stack.callback(own.register_forward_hook(lent._prepared).remove)
        stack.enter_context(_one_attention())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        try:
            yield lent
        finally:
            lent.outputs = {}


@contextmanager
def borrowed(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and frozen parameters for a while; flags, buffers and random state come back as they were.

    One borrower at a time: others wait.
    """
    with _lock_of(model):
        yield from _borrowed(model)


def _borrowed(model: nn.Module) -> Iterator[None]:
    # Only what has to change is written, and all is found in one walk: on a small network a write, a copy or a name per
    # module would cost as much as its forward.
    training: list[nn.Module] = []
    thawed: list[nn.Parameter] = []
    frozen: list[nn.Parameter] = []
    buffers: list[tuple[nn.Module, dict[str, Tensor | None]]] = []
    device = None
    lazy = compiled = False
    modules = modules_of(model)
    for module in modules:
        if module.training:
            training.append(module)
        if module._compiled_call_impl is not None or "_orig_mod" in module._modules:
            compiled = True
        for parameter in module._parameters.values():
            if parameter is not None:
                if device is None:
                    device = parameter.device
                if isinstance(parameter, UninitializedParameter):
                    lazy = True
                (thawed if parameter.requires_grad else frozen).append(parameter)
        if module._buffers:
            buffers.append((module, dict(module._buffers)))
    if lazy or (device is not None and device.type == "meta"):
        raise ExplainError("The model's weights have no values yet.", hint="Load its weights first.")
    flags = {id(module) for module in training}
    put_back = _remember([tensor for _, named in buffers for tensor in named.values() if tensor is not None])
    cuda = [device] if device is not None and device.type == "cuda" else []
    random = torch.random.get_rng_state()
    random_there = [(one, torch.cuda.get_rng_state(one)) for one in cuda]
    try:
        for module in training:
            # Not model.eval(): a class may override train() with side effects of its own.
            module.training = False
        for parameter in thawed:
            parameter.requires_grad = False
        with running_eagerly() if compiled else nullcontext():
            yield
    finally:
        torch.random.set_rng_state(random)
        for there, state in random_there:
            torch.cuda.set_rng_state(state, there)
        for module in modules:
            if module.training is not (id(module) in flags):
                module.training = id(module) in flags
        for parameter in thawed:
            parameter.requires_grad = True
        for parameter in frozen:
            if parameter.requires_grad:
                parameter.requires_grad = False
        for module, named in buffers:
            if list(map(id, module._buffers.values())) != list(map(id, named.values())):
                module._buffers.clear()
                module._buffers.update(named)
        put_back()


def _module_at(model: nn.Module, path: str) -> nn.Module:
    module: nn.Module | None = model
    for name in path.split(".") if path else ():
        module = module._modules[name] if module is not None and name in module._modules else None
    if module is None:
        raise NoSuchLayer(f"The model has no layer {path!r}.")
    return module


def _remember(tensors: Sequence[Tensor]) -> Callable[[], None]:
    """Copies of the tensors' values; the returned function writes back those that were written to since."""
    kept = [(tensor, tensor._version) for tensor in tensors if not tensor.is_inference()]
    by_type: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
    for tensor, _ in kept:
        by_type.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    with torch.no_grad():
        # One copy per type: a copy per tensor costs more than a small network's forward has to spare.
        copies = {
            kind: torch.cat([t if t.dim() == 1 else t.reshape(-1) for t in some]) for kind, some in by_type.items()
        }

    def put_back() -> None:
        changed = [tensor for tensor, version in kept if tensor._version != version]
        if not changed:
            return
        wanted = {id(tensor) for tensor in changed}
        with torch.no_grad():
            for kind, group in by_type.items():
                start = 0
                for tensor in group:
                    if id(tensor) in wanted:
                        tensor.copy_(copies[kind][start : start + tensor.numel()].reshape(tensor.shape))
                    start += tensor.numel()

    return put_back


def unwrap(model: nn.Module) -> nn.Module:
    """The model inside DataParallel, DistributedDataParallel and torch.compile wrappers.

    Raises ExplainError for what is no module.
    """
    if not isinstance(model, nn.Module):
        raise ExplainError(f"This is a {type(model).__name__}, not a torch.nn.Module.", hint="Give the model itself.")
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            inner: object = model.module
        else:
            inner = getattr(model, "_orig_mod", None)
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def first_tensor(output: object) -> Tensor | None:
    """The first tensor in a module's output, None when there is none."""
    return next(tensors_in(output), None)


def replace_tensor(output: object, old: Tensor, new: Tensor) -> object:
    """The same structure with `new` in the place of `old`; containers are copied, not written into."""
    if output is old:
        return new
    if isinstance(output, Mapping):
        changed = {key: replace_tensor(value, old, new) for key, value in output.items()}
        # Model outputs of other libraries are mappings whose class takes the entries as keywords.
        return changed if type(output) is dict else type(output)(**changed)
    if is_dataclass(output) and not isinstance(output, type):
        fields = {field.name: getattr(output, field.name) for field in dataclass_fields(output) if field.init}
        return replace(output, **{name: replace_tensor(value, old, new) for name, value in fields.items()})
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        remake: Callable[..., object] = type(output)  # a named tuple takes its fields one by one
        return remake(*(replace_tensor(value, old, new) for value in output))
    if isinstance(output, tuple | list):
        items = [replace_tensor(value, old, new) for value in output]
        return items if isinstance(output, list) else tuple(items)
    return output


def like_the_model(batch: Tensor, model: nn.Module) -> Tensor:
    """The batch on the model's device in its dtype, cut off from the caller's graph."""
    first = next((tensor for tensor in model.parameters() if tensor.is_floating_point()), None)
    # clone: a tensor made under inference mode cannot take part in a graph.
    batch = batch.detach().clone()
    return batch if first is None else batch.to(device=first.device, dtype=first.dtype)


_ATTENTION_LOCK = threading.Lock()
_attention_users: list[bool] = []


@contextmanager
def _one_attention() -> Iterator[None]:
    """Attention is computed in one way, whether or not something in front of it is differentiated.

    torch has a second one for inference, which rounds otherwise: a map would depend on which other layers are kept. The
    switch is the process's own, so the first to come turns it off and the last to go puts it back.
    """
    with _ATTENTION_LOCK:
        _attention_users.append(torch.backends.mha.get_fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        with _ATTENTION_LOCK:
            first = _attention_users[0]
            _attention_users.pop()
            if not _attention_users:
                torch.backends.mha.set_fastpath_enabled(first)


_LOCKS: weakref.WeakKeyDictionary[nn.Module, threading.RLock] = weakref.WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


def _lock_of(model: nn.Module) -> threading.RLock:
    """One lock per model: a page's cached model is shared by its visitors, and flags and hooks are its state."""
    with _LOCKS_LOCK:
        return _LOCKS.setdefault(model, threading.RLock())
