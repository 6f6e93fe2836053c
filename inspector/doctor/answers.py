"""What a model's answers say by their values: the same for every input, or at the very ends of their range.

And one reason that is seen on the way there: values that grow or fade by a factor from layer to layer, which the
weights' own size makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from inspector.doctor.modes import changed_input, in_mode, run_in_mode
from inspector.doctor.record import Recorder
from inspector.doctor.signs import ALL_ZEROS, CONSTANT, TOO_LARGE
from inspector.doctor.softmax_axes import OF_ONE
from inspector.doctor.trials import copied
from inspector.findings import Finding, FindingKind, Severity
from inspector.forward.watch import ForwardError, Listener, tensors_in, watch
from inspector.units import human_share

ANSWER_FIXED = FindingKind("answer-fixed", Severity.WARNING, "An answer is one number for every input")
ANSWER_AT_ENDS = FindingKind("answer-at-ends", Severity.WARNING, "An answer is nothing but exact zeros and ones")
SCALE = FindingKind("values-grow", Severity.WARNING, "Values grow or fade from layer to layer")

_LEAST = 16
# A run of layers; between the standard deviations of two in a row; between the first and the last.
_LEAST_LAYERS = 4
_GROWS, _GROWN = 2.5, 1e3
_FADES, _FADED = 0.2, 1e-4
# rms of the weights times the root of the fan-in: 1.41 before ReLUs (Kaiming), 1 otherwise.
_WIDE, _NARROW = 2.5, 0.3


def find_scale(model: nn.Module, recorder: Recorder) -> Finding | None:
    """The longest run of layers each of which gives several times what the one before gave."""
    modules = dict(model.named_modules())
    spread = [
        (call.path, modules[call.path], values.deviation)
        for call in recorder.calls
        if call.ended and isinstance(modules.get(call.path), nn.Linear | _ConvNd) and call.outputs
        if (values := call.outputs[0].statistics) is not None and values.deviation
    ]
    for grows in (True, False):
        run: list[tuple[str, Any, float]] = []
        best: list[tuple[str, Any, float]] = []
        for one in spread:
            ratio = one[2] / run[-1][2] if run else 1.0
            run = [*run, one] if run and (ratio >= _GROWS if grows else ratio <= _FADES) else [one]
            best = max(best, run, key=len)
        if len(best) < _LEAST_LAYERS:
            continue
        total = best[-1][2] / best[0][2]
        gains = sorted(_gain(layer) for _, layer, _ in best)
        middle = gains[len(gains) // 2]
        if total < _GROWN if grows else total > _FADED:
            continue
        if middle < _WIDE if grows else middle > _NARROW:
            continue
        layer = best[len(best) // 2][1]
        fan = layer.weight[0].numel()
        factor = total ** (1 / (len(best) - 1))
        rate = f"grow about {factor:.1f}-fold" if grows else f"fade to about {factor:.2g} of them"
        root = math.sqrt(1 / fan)
        return SCALE.found(
            f"Values {rate} at each of {len(best)} layers, from a standard deviation of {best[0][2]:.3g} at "
            f"{best[0][0]} to {best[-1][2]:.3g} at {best[-1][0]}: the weights of {best[len(best) // 2][0]} have "
            f"{middle / math.sqrt(fan):.2g} where {fan:,} inputs want about {root:.2g} (1/sqrt({fan})).",
            subjects=tuple(path for path, _, _ in best[:20]),
            evidence=(("factor", round(factor, 4)), ("layers", len(best))),
            remedy="Initialise by the width: nn.init.kaiming_normal_(weight) before ReLUs, xavier_uniform_ otherwise, "
            "or leave torch's own; a norm between the layers keeps the scale, too.",
        )
    return None


def _gain(layer: Any) -> float:
    weight = layer.weight.detach()
    return 0.0 if weight.is_meta else float(weight.double().square().mean().sqrt()) * math.sqrt(weight[0].numel())


def find_fixed(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    output: Any,
    recorder: Recorder,
    *,
    training: bool,
) -> Iterator[Finding]:
    """Answers that are one number throughout, for another input as well; and those at the ends of a sigmoid."""
    answers = [t for t in tensors_in(output) if t.is_floating_point() and not t.is_meta]
    whole = {torch.float32, torch.float64}
    for at, t in enumerate(answers):
        end = recorder.end_of(t)
        name = f"Answer {at} ({'x'.join(map(str, t.shape))})" if len(answers) > 1 else "The answer"
        if t.numel() < _LEAST or t.dtype not in whole or end is None or end.function not in ("sigmoid", "softmax"):
            continue
        ones, zeros = int((t == 1).sum()), int((t == 0).sum())
        if ones + zeros == t.numel():
            line = f" ({end.line.file}, line {end.line.line}: {end.line.text})" if end.line is not None else ""
            yield ANSWER_AT_ENDS.found(
                f"{name} is nothing but exact zeros and ones ({human_share(ones / t.numel())} ones of {t.numel():,} "
                f"values): the {end.function}{line} is saturated throughout, and its gradient is exactly zero.",
                subjects=(end.path,),
                evidence=(("values", t.numel()), ("ones", ones)),
                remedy="What comes into it is far too large: look at the initialisation and the scale of the input.",
            )
    fixed = [
        at for at, t in enumerate(answers) if t.numel() >= _LEAST and t.dim() and bool((t == t.flatten()[0]).all())
    ]
    # Heads that start at zero are meant so.
    if not fixed or any(p.dim() > 1 and not p.is_meta and not bool(p.detach().any()) for p in model.parameters()):
        return
    for at in _unmoved(model, args, kwargs, fixed, training=training):
        name = f"Answer {at} ({'x'.join(map(str, answers[at].shape))})" if len(answers) > 1 else "The answer"
        value = float(answers[at].flatten()[0])
        yield ANSWER_FIXED.found(
            f"{name} is {value:g} throughout ({answers[at].numel():,} values), and so it is for another input.",
            evidence=(("values", answers[at].numel()), ("value", value)),
            remedy="Look at its last layers: a ReLU whose input is all negative, a saturated activation, a softmax "
            "over one entry.",
        )


def _unmoved(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], fixed: Sequence[int], *, training: bool
) -> list[int]:
    """Of these answers those that another input leaves as they are, and that come from weights (a mask does not)."""
    other = changed_input(args, kwargs)
    if other is None:
        return []
    try:
        ours = [t for t in run_in_mode(model, args, kwargs, training=training) if t.is_floating_point()]
        theirs = [t for t in run_in_mode(model, *other, training=training) if t.is_floating_point()]
        with in_mode(model, training=training):
            output = watch(model, *copied(args, kwargs), Listener(), grad=True)
    except ForwardError:
        return []
    learns = [t.requires_grad for t in tensors_in(output) if t.is_floating_point()]
    if not len(ours) == len(theirs) == len(learns):
        return []
    return [
        at
        for at in fixed
        if at < len(ours) and learns[at] and ours[at].shape == theirs[at].shape and torch.equal(ours[at], theirs[at])
    ]


def with_answers(findings: Sequence[Finding], scale: Finding | None, fixed: Sequence[Finding]) -> list[Finding]:
    """All of them, without what these say better: values beyond half precision because they grow, zeros past which
    another answer goes."""
    told = {f.id for f in findings if f.severity is Severity.WARNING}
    if told & {OF_ONE.id, CONSTANT.id, ALL_ZEROS.id}:
        fixed = [f for f in fixed if f.id != ANSWER_FIXED.id]
    kept = [f for f in findings if not (scale is not None and f.id == TOO_LARGE.id)]
    if fixed:
        kept = [
            replace(f, remedy="") if f.id in (ALL_ZEROS.id, CONSTANT.id) and f.severity is not Severity.WARNING else f
            for f in kept
        ]
    return [*kept, *([scale] if scale is not None else []), *fixed]
