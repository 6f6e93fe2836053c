"""Can this map be trusted to mean anything: the ways in which it is empty, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import unwrap
from inspector.cam.engine.rounding import findings_of_size, is_probabilities
from inspector.cam.method import Method
from inspector.cam.methods import method_named
from inspector.cam.report import Maps, Score
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import counted

CONSTANT_MAP = FindingKind("constant-map", Severity.WARNING, "The map is constant")
NON_FINITE_MAP = FindingKind("non-finite-map", Severity.ERROR, "The map is not finite")
ZERO_GRADIENT_MAP = FindingKind("zero-gradient-map", Severity.WARNING, "No gradient reaches the layer")
EVEN_MAP = FindingKind("even-map", Severity.WARNING, "The map is nearly even")
ALL_NEGATIVE_MAP = FindingKind("all-negative-map", Severity.NOTICE, "The whole map is negative")
MOSTLY_NEGATIVE_MAP = FindingKind("mostly-negative-map", Severity.NOTICE, "Most of the map is negative")
EVEN_ANSWER = FindingKind("even-answer", Severity.WARNING, "The model answers every class alike")

# Relative: a map whose cells differ by less than this share of its magnitude shows rounding, not places.
FLAT = 1e-5
# A map whose coldest cell has this share of its hottest has no cold place: whatever it is drawn with, it is one colour.
EVEN = 0.9
# A best class that is so little above chance was not told from the others.
ABOVE_CHANCE = 1e-3
# From this share of its mass below zero on, a map shows next to nothing of itself.
MOSTLY = 0.97

_OTHER_SCALE = (
    "A detector finds small boxes on its finer maps and large ones on its coarser maps: try a layer with more, or with "
    "fewer, cells."
)


def judge(
    model: nn.Module, batch: Tensor, maps: Maps, index: int, target: Score, *, of_box: bool = False
) -> tuple[Finding, ...]:
    """Findings about one map; () for a map that has something to show.

    batch: (1, C, H, W), the prepared picture. At most one finding, the first cause that applies: not finite, zero
    gradient, constant, rounding, lost in the score, even, all negative, nearly so, an answer that tells no class.
    Methods that read no gradient, or look at no layer, are judged by their map.
    of_box: the score is a detector's of one box.
    """
    found = tuple(_findings(unwrap(model), batch, maps, index, target))[:1]
    if of_box and found and found[0].id == "zero-gradient-map":
        return (replace(found[0], remedy=_OTHER_SCALE),)
    return found


def judge_fused(
    model: nn.Module,
    batch: Tensor,
    parts: Sequence[Maps],
    maps: Maps,
    index: int,
    target: Score,
    *,
    of_box: bool = False,
) -> tuple[Finding, ...]:
    """Findings about one map that was made of several layers' maps: each of theirs, else that they share no place."""
    found = tuple(finding for part in parts for finding in judge(model, batch, part, index, target, of_box=of_box))
    if found or float(maps.heat[index].max()) > 0:
        return found
    return (
        CONSTANT_MAP.found(
            subjects=tuple(part.layer.path for part in parts),
            says=f"The map is 0 everywhere: no place is hot at all {len(parts)} layers.",
            evidence=(("raw_minimum", 0.0), ("raw_maximum", 0.0)),
            remedy="Look at the layers one by one, or fuse them by their mean.",
        ),
    )


def _findings(model: nn.Module, batch: Tensor, maps: Maps, index: int, target: Score) -> Iterator[Finding]:
    raw = maps.raw[index].double()
    method = method_named(maps.method)
    subjects = (maps.layer.path,) if maps.layer.path else ()
    called = target.name or f"class {target.index}"
    broken = int((~torch.isfinite(raw)).sum())
    if broken:
        yield NON_FINITE_MAP.found(
            subjects=subjects,
            says=f"{broken} of {raw.numel()} cells of the map are not finite, so no heat is shown: "
            + _why_not_finite(model, batch, maps, index, method),
            evidence=(("cells_not_finite", broken), ("cells", raw.numel())),
            remedy="Look at the weights page for the tensors that hold them.",
        )
        return
    # NaN where a method has no gradient of a layer: then an empty map is all there is to see.
    peak = float(maps.gradient_peak[index])
    empty = not bool(raw.any())
    if peak == 0.0 or (empty and method.gradient and peak != peak):
        says, remedy = _why_no_gradient(model, maps, index, called, method)
        yield ZERO_GRADIENT_MAP.found(
            subjects=subjects,
            says=says,
            evidence=(("gradient_peak", 0.0), ("prefix_gradient_peak", _or_zero(maps.prefix_peak[index]))),
            remedy=remedy,
        )
        return
    lowest, highest = float(raw.min()), float(raw.max())
    size = max(abs(lowest), abs(highest))
    evidence = (("raw_minimum", lowest), ("raw_maximum", highest))
    if empty or (raw.numel() > 1 and highest - lowest <= FLAT * size):
        yield CONSTANT_MAP.found(
            subjects=subjects,
            says=f"The map is constant: {_why_constant(maps, index, called, method, empty)}, so it points nowhere.",
            evidence=evidence,
            remedy="Try another layer or method, and check that the picture is not of one colour.",
        )
        return
    yield from findings_of_size(model, maps, index, target, method)
    share = _negative_share(raw)
    if raw.numel() > 1 and lowest >= EVEN * highest > 0:
        yield EVEN_MAP.found(
            subjects=subjects,
            says=f"The map is nearly even: all {raw.numel()} cells of {method.title} have {100 * lowest / highest:.0f} "
            f"% or more of the hottest for {called} (from {lowest:.4g} to {highest:.4g}), so it does not tell where "
            "the model looks.",
            evidence=(*evidence, ("coldest_share", lowest / highest), ("limit", EVEN)),
            remedy="Try an earlier layer, or ask what speaks for this class and not for the next one (Finer-CAM); of a "
            "picture without a place that stands out there is nothing to show.",
        )
    elif highest <= 0:
        yield ALL_NEGATIVE_MAP.found(
            subjects=subjects,
            says=f"All {raw.numel()} cells of {method.title} are negative for {called} (from {lowest:.4g} to "
            f"{highest:.4g}): after ReLU nothing is left.",
            evidence=evidence,
            remedy="Try another class or an earlier layer.",
        )
    elif share >= MOSTLY:
        yield MOSTLY_NEGATIVE_MAP.found(
            subjects=subjects,
            says=f"{100 * share:.2f} % of what {method.title} adds up is negative for {called} (from {lowest:.4g} to "
            f"{highest:.4g}): the heat is the little that is left after ReLU.",
            evidence=(*evidence, ("negative_share", share)),
            remedy="The sign of a pattern is arbitrary: look at what is for and what is against."
            if method.eigen
            else "Try another class or an earlier layer.",
        )
    elif (above := _above_chance(maps.logits[index], target)) is not None and above <= ABOVE_CHANCE:
        classes = maps.logits.shape[-1]
        yield EVEN_ANSWER.found(
            subjects=subjects,
            says=f"The model gives each of {classes:,} classes {100 / classes:.3g} %: it tells none from another, and "
            "the map shows what makes next to no difference.",
            evidence=(("classes", classes), ("above_chance", above), ("limit", ABOVE_CHANCE)),
            remedy="So do weights that were never trained, and pictures prepared otherwise than in training.",
        )


def _above_chance(logits: Tensor, target: Score) -> float | None:
    """By which share the best of K classes is above 1/K; None for scores that are no shares of one whole. (K,)."""
    if logits.ndim != 1 or len(logits) < 2 or target.probability is None:
        return None
    scores = logits.double()
    shares = scores if is_probabilities(scores) else scores.softmax(dim=0)
    meant = abs(float(shares[target.index]) - target.probability) < 1e-9 and abs(float(shares.sum()) - 1) < 1e-3
    return float(shares.max()) * len(scores) - 1 if meant else None


def _negative_share(raw: Tensor) -> float:
    """How much of the map's absolute mass is below zero. raw: (h, w), finite, float64."""
    mass = float(raw.abs().sum())
    return float(raw.clamp_max(0).abs().sum()) / mass if mass else 0.0


def _why_not_finite(model: nn.Module, batch: Tensor, maps: Maps, index: int, method: Method) -> str:
    """Where the NaN or infinity comes from, nearest to its origin first."""
    if not torch.isfinite(batch).all():
        return "the prepared picture has values that are not finite; check mean and standard deviation."
    sick = [
        name
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
        if tensor.is_floating_point() and not torch.isfinite(tensor).all()
    ]
    if sick:
        hold = "holds" if len(sick) == 1 else "hold"
        return f"{counted(len(sick), 'tensor')} of the model {hold} NaN or infinity, the first is {sick[0]}."
    where = maps.layer.path or "the picture"
    if not torch.isfinite(maps.activation_peak[index]):
        return f"the output of {where} overflows."
    if not torch.isfinite(maps.logits[index]).all():
        return f"the class scores overflow behind {where}."
    if not method.gradient:
        return f"the scores of changed copies overflow behind {where}."
    return f"the gradient at {where} overflows."


def _why_no_gradient(model: nn.Module, maps: Maps, index: int, called: str, method: Method) -> tuple[str, str]:
    """(one sentence, remedy) for a gradient that is exactly 0 over the whole grid."""
    layer = maps.layer
    if float(maps.prefix_peak[index]) > 0:
        return (
            f"No patch behind {layer.path} reaches the answer: only the class token does, so the gradient of all "
            f"{layer.grid[0]}x{layer.grid[1]} patches is exactly 0.",
            "Choose the layer that enters the last attention, the suggested one.",
        )
    heads = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module.out_features == maps.logits.shape[1] and not module.weight.any()
    ]
    if heads:
        return (
            f"The weights of {heads[-1]} are all 0, so no place can change the score of {called}.",
            "The head was never trained or not loaded; load the file that has it.",
        )
    if is_probabilities(maps.logits[index]) and float(maps.logits[index].max()) == 1.0:
        return (
            f"The answer is probabilities, and a softmax or sigmoid that is as sure as {called} passes nothing back.",
            "Explain the model without its last softmax or sigmoid.",
        )
    cut_off = (
        "The units behind it may all be cut off (dead ReLU), the layer may lie on a branch that is not used, or the "
        "model stops gradients behind it (no_grad, detach, checkpointing, quantised weights)."
    )
    if maps.gradient_peak[index].isnan():
        where = f" inside what Grad-CAM finds at {layer.path}" if layer.path else ""
        return (
            f"{method.title} is 0 everywhere{where}: no positive part of the gradient of {called} arrives.",
            cut_off,
        )
    return (
        f"No gradient of the score of {called} reaches the output of {layer.path}: it is exactly 0 everywhere.",
        cut_off,
    )


def _why_constant(maps: Maps, index: int, called: str, method: Method, empty: bool) -> str:
    where = maps.layer.path or "the picture"
    if float(maps.activation_peak[index]) == 0.0:
        return f"the output of {where} is 0 everywhere" if maps.layer.path else "the prepared picture is 0 everywhere"
    if not empty:
        return f"every cell is {float(maps.raw[index].double().max()):.4g}"
    if method.gradient:
        return f"nothing at {where} speaks for {called}, and {method.title} keeps nothing else"
    if maps.layer.path:
        return f"no channel of {where} changes the score of {called}"
    return f"no change of the picture changes the score of {called}"


def _or_zero(value: Tensor) -> float:
    return 0.0 if bool(value.isnan()) else float(value)
