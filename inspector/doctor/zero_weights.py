"""Weights that are zero and stay so: each one's gradient is the other's zeros, whatever the data and the steps.

One zero factor is the usual start of an adapter, a zero convolution, a gate: its own gradient is not zero, and after
one step the others have theirs. What still has none when all that can move has moved never learns. It is tried out:
weights are moved and given back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from inspector.doctor.trials import as_it_was, copied
from inspector.findings import Finding, FindingKind, Severity
from inspector.forward.watch import ForwardError, Listener, tensors_in, watch

STUCK = FindingKind("stuck-at-zero", Severity.WARNING, "Weights are zero and can never get a gradient")
# Zero layers one behind the other wake up one a step.
_MOST_STEPS = 6
_SIZE = 0.02


def find_stuck(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], ran: set[int], *, seed: int = 0
) -> Iterator[Finding]:
    """ran: ids of the parameters that the pass used. To be called in the mode that is asked about."""
    wanted = {
        name: p
        for name, p in model.named_parameters()
        if p.requires_grad and id(p) in ran and not p.is_meta and p.is_floating_point() and p.numel()
    }
    zero = {name for name, p in wanted.items() if not bool(p.detach().any())}
    if not any(wanted[name].dim() > 1 for name in zero):
        return
    generator = torch.Generator().manual_seed(seed)
    with _given_back([wanted[name] for name in zero]), as_it_was(model):
        for _ in range(_MOST_STEPS):
            moved = _moved(model, args, kwargs, wanted)
            if moved is None:
                return
            awake = [name for name in zero if moved[name]]
            if not awake:
                break
            for name in awake:
                _fill(wanted[name], generator)
            zero -= set(awake)
        else:
            return
        stuck = [name for name in wanted if name in zero and wanted[name].dim() > 1]
        dead = [name for name, moves in moved.items() if not moves and name not in zero and wanted[name].dim() > 1]
        if not stuck:
            return
        # They, and not the input or something behind them, hold the gradient back.
        for name in zero:
            _fill(wanted[name], generator)
        moved = _moved(model, args, kwargs, wanted)
        if moved is None:
            return
        stuck, dead = [name for name in stuck if moved[name]], [name for name in dead if moved[name]]
    if stuck:
        yield _finding(stuck, dead, wanted)


def _finding(stuck: Sequence[str], dead: Sequence[str], wanted: Mapping[str, nn.Parameter]) -> Finding:
    more = f" and {len(stuck) - 4:,} more" if len(stuck) > 4 else ""
    behind = f" So does not {dead[0]} between them." if len(dead) == 1 else ""
    behind = f" Nor do {len(dead):,} others that only they reach ({dead[0]}, ...)." if len(dead) > 1 else behind
    count = sum(wanted[name].numel() for name in stuck)
    one = len(stuck) == 1
    return STUCK.found(
        f"{', '.join(stuck[:4])}{more} ({count:,} weights) {'is' if one else 'are'} all zeros, and the gradient of "
        f"{'it' if one else 'each'} is exactly zero at every step, since it is multiplied by the "
        f"{'same zeros' if one else 'zeros of another'}: {'it never learns' if one else 'they never learn'}.{behind}",
        subjects=tuple(dict.fromkeys(name.rpartition(".")[0] for name in stuck))[:20],
        evidence=(("parameters", len(stuck)), ("weights", count)),
        remedy="Start one of two factors at random: of an adapter A (nn.init.kaiming_uniform_), with B at zero; of a "
        "branch the first layer.",
    )


def _fill(parameter: nn.Parameter, generator: torch.Generator) -> None:
    with torch.no_grad():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * _SIZE)


@contextmanager
def _given_back(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """They were zero throughout."""
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter in parameters:
                parameter.zero_()


def _moved(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], wanted: Mapping[str, nn.Parameter]
) -> dict[str, bool] | None:
    """Which parameters get a gradient that is not exactly zero; None where there is none to be had.

    The answers are weighed at random: of a softmax the plain sum is always 1.
    """
    try:
        output = watch(model, *copied(args, kwargs), Listener(), grad=True)
        answers: list[Tensor] = [t for t in tensors_in(output) if t.is_floating_point() and t.requires_grad]
        if not answers:
            return None
        generator = torch.Generator().manual_seed(1)
        weights = [torch.rand(t.shape, generator=generator).to(t) + 0.5 for t in answers]
        grads = torch.autograd.grad(answers, list(wanted.values()), weights, allow_unused=True)
    except (ForwardError, RuntimeError):
        return None
    return {
        name: grad is not None and bool(grad.isfinite().all()) and bool(grad.any())
        for name, grad in zip(wanted, grads, strict=True)
    }
