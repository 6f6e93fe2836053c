"""What differs between training and evaluation: the same input with the same random numbers in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from inspector.doctor.draws import Draw, Draws
from inspector.doctor.frames import forward_code
from inspector.doctor.trials import as_it_was, copied
from inspector.forward.watch import ForwardError, Listener, tensors_in, watch

SEED = 0
# Of the answer's size: what kernels differ by.
_NOISE = 1e-7


def reading_mode(model: nn.Module, called: set[str]) -> tuple[tuple[str, int], ...]:
    """(class, how many) of the modules that ran and ask which mode they are in; without dropouts of nothing."""
    kinds: Counter[str] = Counter()
    for path, module in model.named_modules():
        code = forward_code(module)
        if path not in called or code is None or "training" not in code.co_names:
            continue
        if not any(getattr(module, name, None) == 0 for name in ("p", "dropout", "drop_prob", "dropout_p")):
            kinds[type(module).__name__] += 1
    return tuple(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))


@contextmanager
def in_mode(model: nn.Module, *, training: bool, seed: int = SEED) -> Iterator[None]:
    """For whatever is run inside: the mode, and the same random numbers each time. The model is left as it was."""
    with as_it_was(model):
        model.train(training)
        torch.manual_seed(seed)
        yield


def run_in_mode(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    training: bool,
    seed: int = SEED,
    listener: Listener | None = None,
) -> list[Tensor]:
    """The tensors that come out, copied. listener: hears of the pass, which keeps no gradients. The model is left as
    it was. Raises ForwardError."""
    with in_mode(model, training=training, seed=seed):
        output = watch(model, *copied(args, kwargs), listener or Listener())
        return [tensor.detach().clone() for tensor in tensors_in(output)]


def difference_of(ours: Sequence[Tensor], other: Sequence[Tensor]) -> tuple[float, float] | None:
    """(greatest absolute difference, norm of it over the norm of ours); None where they cannot be compared, as NaN
    with NaN."""
    if len(ours) != len(other) or not ours or any(a.shape != b.shape for a, b in zip(ours, other, strict=True)):
        return None
    kept = [(a, b) for a, b in zip(ours, other, strict=True) if a.is_floating_point() and a.numel() and not a.is_meta]
    if not kept:
        return None
    apart = torch.cat([(a.double() - b.double()).flatten() for a, b in kept])
    size = torch.cat([a.double().flatten() for a, _ in kept])
    if not bool(apart.isfinite().all()):
        return None
    norm = float(size.norm())
    return float(apart.abs().max()), float(apart.norm()) / norm if norm else 0.0


def find_random(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], ours: Sequence[Tensor]
) -> tuple[Draw, ...] | None:
    """What drew random numbers, where evaluation with others gives another answer; None where it does not."""
    draws = Draws()
    try:
        found = difference_of(ours, run_in_mode(model, args, kwargs, training=False, seed=SEED + 1, listener=draws))
    except ForwardError:
        return None
    return tuple(draws.found) if found is not None and found[0] > 0 else None


def changed_input(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """Another input of the same shapes and kinds; None where the change changes nothing."""

    def other(tensor: Tensor) -> Tensor:
        turned = tensor.flip(tuple(range(tensor.dim())))
        return turned * 0.5 + 0.25 if tensor.is_floating_point() else turned

    changed: tuple[Any, Any] = tree_map_only(Tensor, other, (tuple(args), dict(kwargs)))
    given = zip(tensors_in((tuple(args), dict(kwargs))), tensors_in(changed), strict=True)
    return None if all(torch.equal(a, b) for a, b in given) else changed


def follows_input(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, training: bool) -> bool | None:
    """Whether another input gives another answer, with the same random numbers; None where that cannot be told."""

    changed = changed_input(args, kwargs)
    if changed is None:
        return None
    try:
        ours = run_in_mode(model, args, kwargs, training=training)
        found = difference_of(ours, run_in_mode(model, changed[0], changed[1], training=training))
    except ForwardError:
        return None
    return None if found is None else found[1] > _NOISE or (found[0] > 0 and found[1] == 0)
