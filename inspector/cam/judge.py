"""Can this map be trusted to mean anything: the ways in which it is empty, and why."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from inspector.cam.capture import unwrap
from inspector.cam.maps import Maps
from inspector.cam.report import Score
from inspector.findings import Finding, Severity
from inspector.units import counted

# Relative: a map whose cells differ by less than this share of its magnitude shows rounding, not places.
FLAT = 1e-5


def judge(model: nn.Module, batch: Tensor, maps: Maps, index: int, target: Score) -> tuple[Finding, ...]:
    """Findings about one map; () for a map that has something to show.

    batch: (1, C, H, W), the prepared picture. At most one finding, the first cause that applies: not finite, zero
    gradient, constant, all negative.
    """
    return tuple(_findings(unwrap(model), batch, maps, index, target))[:1]


def _findings(model: nn.Module, batch: Tensor, maps: Maps, index: int, target: Score) -> Iterator[Finding]:
    raw = maps.raw[index].double()
    layer = maps.layer.path
    called = target.name or f"class {target.index}"
    broken = int((~torch.isfinite(raw)).sum())
    if broken:
        yield Finding(
            id="non-finite-map",
            severity=Severity.ERROR,
            subjects=(layer,),
            says=f"{broken} of {raw.numel()} cells of the map are not finite, so no heat is shown: "
            + _why_not_finite(model, batch, maps, index),
            evidence=(("cells_not_finite", broken), ("cells", raw.numel())),
            remedy="Look at the weights page for the tensors that hold them.",
        )
        return
    if float(maps.gradient_peak[index]) == 0.0:
        says, remedy = _why_no_gradient(model, maps, index, called)
        yield Finding(
            id="zero-gradient-map",
            severity=Severity.WARNING,
            subjects=(layer,),
            says=says,
            evidence=(("gradient_peak", 0.0), ("prefix_gradient_peak", float(maps.prefix_peak[index]))),
            remedy=remedy,
        )
        return
    lowest, highest = float(raw.min()), float(raw.max())
    size = max(abs(lowest), abs(highest))
    evidence = (("raw_minimum", lowest), ("raw_maximum", highest))
    if raw.numel() > 1 and highest - lowest <= FLAT * size:
        silent = float(maps.activation_peak[index]) == 0.0
        cause = f"the output of {layer} is 0 everywhere" if silent else f"every cell is {highest:.4g}"
        yield Finding(
            id="constant-map",
            severity=Severity.WARNING,
            subjects=(layer,),
            says=f"The map is constant: {cause}, so it points nowhere.",
            evidence=evidence,
            remedy="Try an earlier layer, and check that the picture is not of one colour.",
        )
    elif highest <= 0:
        yield Finding(
            id="all-negative-map",
            severity=Severity.NOTICE,
            subjects=(layer,),
            says=f"All {raw.numel()} cells speak against {called} (from {lowest:.4g} to {highest:.4g}); "
            "after ReLU nothing is left.",
            evidence=evidence,
            remedy="Try another class or an earlier layer.",
        )


def _why_not_finite(model: nn.Module, batch: Tensor, maps: Maps, index: int) -> str:
    """Where the NaN or infinity comes from, nearest to its origin first."""
    if not torch.isfinite(batch).all():
        return "the prepared picture has values that are not finite; check mean and standard deviation."
    sick = [
        name
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
        if tensor.is_floating_point() and not torch.isfinite(tensor).all()
    ]
    if sick:
        return f"{counted(len(sick), 'tensor')} of the model hold NaN or infinity, the first is {sick[0]}."
    if not torch.isfinite(maps.activation_peak[index]):
        return f"the output of {maps.layer.path} overflows."
    if not torch.isfinite(maps.logits[index]).all():
        return f"the class scores overflow behind {maps.layer.path}."
    return f"the gradient at {maps.layer.path} overflows."


def _why_no_gradient(model: nn.Module, maps: Maps, index: int, called: str) -> tuple[str, str]:
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
    return (
        f"The score of {called} does not depend on the output of {layer.path}: its gradient is exactly 0 everywhere.",
        "The units behind it may all be cut off (dead ReLU), or the layer may lie on a branch that is not used.",
    )
