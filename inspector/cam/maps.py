"""Heat maps for a batch of prepared pictures: one forward, one backward, then arithmetic.

This is the engine beneath `explain.py`; benchmarks and loops over many pictures call it directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from inspector.cam.capture import Place, capture
from inspector.cam.layers import find_layer, propose_layers
from inspector.cam.methods import METHODS, method_named
from inspector.cam.report import LayerProposal
from inspector.errors import LayerNotSpatial, TargetOutOfRange, UsageError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Maps:
    """Maps of N pictures, on the CPU, float32 or the model's float64.

    heat: (N, H, W) in [0, 1] at the input size: ReLU, divided by its own maximum, enlarged bilinearly; all 0 where
    nothing speaks for the class or the map is not finite. raw: (N, h, w) before ReLU, at the layer's grid.
    logits: (N, classes). targets: (N,), the class of each map. layer: where.
    gradient_peak: (N,) largest absolute gradient over the layer's grid. prefix_peak: (N,) the same over class and
    register tokens, 0 for maps. activation_peak: (N,) largest absolute activation over the grid.
    """

    heat: Tensor
    raw: Tensor
    logits: Tensor
    targets: Tensor
    layer: LayerProposal
    gradient_peak: Tensor
    prefix_peak: Tensor
    activation_peak: Tensor


def heat_maps(
    model: nn.Module,
    batch: Tensor,
    *,
    layer: LayerProposal | str | None = None,
    targets: int | Sequence[int] | Tensor | None = None,
    method: str = "grad-cam",
) -> Maps:
    """One map for each picture.

    batch: (N, C, H, W), prepared. layer: a name, a proposal (which saves tracing), None for the suggested one.
    targets: one class for all, one for each, None for each picture's best class.
    Raises NoSuchLayer, LayerNotSpatial, TargetOutOfRange, ExplainError; UsageError for an unknown method or a batch
    that is none. The model is left as it was.
    """
    entry = method_named(method, METHODS)
    if batch.dim() != 4 or batch.shape[0] == 0:
        raise UsageError(f"A batch (N, C, H, W) is needed, not {tuple(batch.shape)}.")
    found = choose_layer(model, layer, (batch.shape[1], batch.shape[2], batch.shape[3]))
    place = Place(found.path, found.call)
    with capture(model, [place]) as lent:
        logits = working_precision(lent.forward(batch))
        chosen = target_indices(logits.detach(), targets)
        score = logits.gather(1, chosen[:, None].to(logits.device)).sum()
        gradient = lent.gradients(score)[place]
        activation = working_precision(lent.outputs[place].detach())
        gradient = working_precision(gradient)
    with torch.inference_mode(False), torch.no_grad():
        activation_map, _ = spatial(activation, found)
        gradient_map, prefix = spatial(gradient, found)
        raw = entry.arithmetic(activation_map, gradient_map).cpu()
        return Maps(
            heat=enlarge(normalise(raw), (batch.shape[2], batch.shape[3])),
            raw=raw,
            logits=logits.detach().cpu(),
            targets=chosen.cpu(),
            layer=found,
            gradient_peak=_peak(gradient_map),
            prefix_peak=_peak(prefix),
            activation_peak=_peak(activation_map),
        )


def choose_layer(
    model: nn.Module, layer: LayerProposal | str | None, input_shape: tuple[int, int, int]
) -> LayerProposal:
    """The layer that is meant, for an input of (C, H, W)."""
    if isinstance(layer, LayerProposal):
        return layer
    return propose_layers(model, input_shape)[0] if layer is None else find_layer(model, layer, input_shape)


def target_indices(logits: Tensor, targets: int | Sequence[int] | Tensor | None) -> Tensor:
    """(N,) int64 class indices. logits: (N, classes). Raises TargetOutOfRange, UsageError for a wrong count."""
    count, classes = logits.shape
    if targets is None:
        # NaN would win every comparison; the finding about it comes later.
        return torch.nan_to_num(logits, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf).argmax(dim=1)
    wanted = [targets] * count if isinstance(targets, int) else [int(target) for target in targets]
    if len(wanted) != count:
        raise UsageError(f"{len(wanted)} targets were given for {count} pictures.")
    for target in wanted:
        if not 0 <= target < classes:
            raise TargetOutOfRange(
                f"The model has {classes} classes, numbered 0 to {classes - 1}; there is no class {target}.",
                hint="Leave the class out to explain the best one.",
            )
    return torch.tensor(wanted, dtype=torch.int64, device=logits.device)


def spatial(tensor: Tensor, layer: LayerProposal) -> tuple[Tensor, Tensor]:
    """A layer's output as ((N, C, h, w) map, (N, P, C) prefix tokens); P is 0 for maps.

    Raises LayerNotSpatial when the output does not have the layout that the layer was found to have.
    """
    height, width = layer.grid
    if layer.layout == "NCHW" and tensor.dim() == 4:
        return tensor, tensor.new_zeros((tensor.shape[0], 0, tensor.shape[1]))
    if layer.layout == "NHWC" and tensor.dim() == 4:
        return tensor.permute(0, 3, 1, 2), tensor.new_zeros((tensor.shape[0], 0, tensor.shape[3]))
    if layer.layout == "NLC" and tensor.dim() == 3 and tensor.shape[1] == layer.prefix_tokens + height * width:
        patches = tensor[:, layer.prefix_tokens :]
        folded = patches.reshape(tensor.shape[0], height, width, tensor.shape[2]).permute(0, 3, 1, 2)
        return folded, tensor[:, : layer.prefix_tokens]
    found = "x".join(map(str, tensor.shape))
    raise LayerNotSpatial(
        f"Layer {layer.path!r} put out {found}, which is no {layer.layout} map with a grid of {height}x{width}.",
        hint="Trace the layers again for this input size.",
    )


def normalise(raw: Tensor) -> Tensor:
    """ReLU, then each map divided by its own maximum; no constant is added to the divisor, so that a faint map is not
    shrunk. raw: (N, h, w). All 0 where nothing is positive or something is not finite."""
    positive = raw.clamp_min(0)
    peak = positive.amax(dim=(1, 2), keepdim=True)
    usable = torch.isfinite(raw).all(dim=2, keepdim=True).all(dim=1, keepdim=True) & (peak > 0)
    return torch.where(usable, positive / torch.where(usable, peak, torch.ones_like(peak)), torch.zeros_like(positive))


def enlarge(heat: Tensor, size: tuple[int, int]) -> Tensor:
    """(N, h, w) to (N, H, W), bilinear between cell centres."""
    return functional.interpolate(heat[:, None], size=size, mode="bilinear", align_corners=False)[:, 0]


def working_precision(tensor: Tensor) -> Tensor:
    """Half precisions as float32; float32 and float64 as they are."""
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def _peak(tensor: Tensor) -> Tensor:
    flat = tensor.flatten(1).abs()
    return flat.amax(dim=1).cpu() if flat.shape[1] else torch.zeros(flat.shape[0], dtype=flat.dtype)
