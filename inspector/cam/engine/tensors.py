"""Arithmetic on activations and maps that every method shares: layouts, class indices, normalising, enlarging."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from inspector.cam.report import Centres, LayerProposal
from inspector.errors import LayerNotSpatial, TargetOutOfRange, UsageError


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


def shape_of(batch: Tensor) -> tuple[int, int, int]:
    """(C, H, W) of a batch (N, C, H, W)."""
    return batch.shape[1], batch.shape[2], batch.shape[3]


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


def channel_axis(layer: LayerProposal) -> int:
    """Which axis of the layer's output, as it comes, holds the channels."""
    return 1 if layer.layout == "NCHW" else 3 if layer.layout == "NHWC" else 2


def normalise(raw: Tensor) -> Tensor:
    """ReLU, then each map divided by its own maximum; no constant is added to the divisor, so that a faint map is not
    shrunk. raw: (N, h, w). All 0 where nothing is positive or something is not finite."""
    positive = raw.clamp_min(0)
    peaks = positive.amax(dim=(1, 2))
    # x - x is 0 for a finite x and NaN for any other: one cheap pass where a test by element takes five.
    finite = (raw - raw).sum(dim=(1, 2))
    usable = [high > 0 and rest == 0 for high, rest in zip(peaks.tolist(), finite.tolist(), strict=True)]
    if all(usable):
        return positive / peaks[:, None, None]
    shown = torch.tensor(usable, device=raw.device)
    heat = positive / torch.where(shown, peaks, torch.ones_like(peaks))[:, None, None]
    return torch.where(shown[:, None, None], heat, torch.zeros_like(heat))


def enlarge(heat: Tensor, size: tuple[int, int], centres: Centres | None = None) -> Tensor:
    """(N, h, w) to (N, H, W), bilinear between cell centres, the outermost held to the edges.

    centres: where the cells look; None for cells that are spread evenly.
    """
    if centres is None or _is_even(centres, heat, size):
        return functional.interpolate(heat[:, None], size=size, mode="bilinear", align_corners=False)[:, 0]
    for axis, (side, first, step) in enumerate(zip(size, centres.first, centres.step, strict=True), start=1):
        cells = heat.shape[axis]
        places = ((torch.arange(side, device=heat.device) + 0.5 - first) / step).clamp(0, cells - 1)
        below = places.floor().long()
        share = (places - below).to(heat.dtype).reshape(-1, *[1] * (2 - axis))
        above = (below + 1).clamp_max(cells - 1)
        heat = heat.index_select(axis, below) * (1 - share) + heat.index_select(axis, above) * share
    return heat


def centres_of(layer: LayerProposal, field: Tensor, *, aligned: bool = False) -> Centres | None:
    """Where the cells of a field (..., h, w) look that was made at this layer; None for cells that are spread evenly,
    as the pixels of a map that has no cells are."""
    return layer.centres if aligned and tuple(field.shape[-2:]) == layer.grid else None


def _is_even(centres: Centres, heat: Tensor, size: tuple[int, int]) -> bool:
    each = zip(centres.first, centres.step, heat.shape[1:], size, strict=True)
    return all(step * cells == side and 2 * first == step for first, step, cells, side in each)


def without_padding(maps: Tensor, shown: tuple[float, float]) -> Tensor:
    """(N, h, w) of what lies below and to the right of the picture, resampled to the picture alone, bilinearly.

    shown: the picture's share of height and width. Itself where nothing was padded.
    """
    if shown == (1.0, 1.0):
        return maps
    places = [
        2 * share * (torch.arange(side, dtype=maps.dtype, device=maps.device) + 0.5) / side - 1
        for share, side in zip(shown, maps.shape[1:], strict=True)
    ]
    down, across = torch.meshgrid(*places, indexing="ij")
    grid = torch.stack([across, down], dim=-1).expand(maps.shape[0], -1, -1, -1)
    return functional.grid_sample(maps[:, None], grid, padding_mode="border", align_corners=False)[:, 0]


def working_precision(tensor: Tensor) -> Tensor:
    """Half precisions as float32; float32 and float64 as they are."""
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def stored_epsilon(tensor: Tensor) -> float:
    """One unit in the last place, relatively, of the coarsest precision that holds all these numbers.

    Half precisions are computed with as float32, but what is added up is known no better for that.
    """
    for kind in (torch.bfloat16, torch.float16):
        if torch.equal(tensor.to(kind).to(tensor.dtype), tensor):
            return torch.finfo(kind).eps
    return torch.finfo(tensor.dtype).eps


def peak(tensor: Tensor) -> Tensor:
    """(N,) largest magnitude of each picture's, on the CPU; 0 where there is nothing, NaN where one is."""
    flat = tensor.flatten(1).abs()
    return flat.amax(dim=1).cpu() if flat.shape[1] else torch.zeros(flat.shape[0], dtype=flat.dtype)
