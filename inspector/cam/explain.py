"""Where does this model look: a picture in, one heat map with everything needed to judge it out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import metadata

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam.judge import judge
from inspector.cam.maps import Maps, heat_maps
from inspector.cam.preprocess import prepare
from inspector.cam.report import Crop, Explanation, LayerProposal, Preprocessing, Score
from inspector.errors import UsageError


def explain(
    model: nn.Module,
    picture: Image.Image,
    *,
    preprocessing: Preprocessing,
    layer: LayerProposal | str | None = None,
    target: int | None = None,
    method: str = "grad-cam",
    categories: Sequence[str] = (),
    top: int = 5,
) -> Explanation:
    """One heat map of one picture.

    layer: a name ("layer4", "relu:0" for the first call of a shared module), a proposal, None for the suggested one.
    target: class index, None for the model's best. categories: class names in output order; ignored when their count
    is not that of the outputs. Raises ExplainError and its kinds. The model is left as it was.
    """
    return explain_batch(
        model,
        [picture],
        preprocessing=preprocessing,
        layer=layer,
        targets=target,
        method=method,
        categories=categories,
        top=top,
    )[0]


def explain_batch(
    model: nn.Module,
    pictures: Sequence[Image.Image],
    *,
    preprocessing: Preprocessing,
    layer: LayerProposal | str | None = None,
    targets: int | Sequence[int] | None = None,
    method: str = "grad-cam",
    categories: Sequence[str] = (),
    top: int = 5,
) -> tuple[Explanation, ...]:
    """The same for several pictures in one forward; `seconds` is each picture's share.

    Raises UsageError when the preprocessing does not bring the pictures to one size.
    """
    start = time.perf_counter()
    prepared = [prepare(picture, preprocessing) for picture in pictures]
    sizes = {tuple(tensor.shape) for tensor, _ in prepared}
    if len(sizes) != 1:
        raise UsageError(f"One batch needs pictures of one size; these have {len(sizes)}.", hint="Set a crop size.")
    batch = torch.cat([tensor for tensor, _ in prepared])
    maps = heat_maps(model, batch, layer=layer, targets=targets, method=method)
    seconds = (time.perf_counter() - start) / len(pictures)
    return tuple(
        _explanation(model, batch, maps, index, crop, preprocessing, method, categories, top, seconds)
        for index, (_, crop) in enumerate(prepared)
    )


def scores_of(logits: Tensor, categories: Sequence[str] = ()) -> tuple[Score, ...]:
    """Every class, best first. logits: (classes,). One output alone is read as a yes-no answer (sigmoid)."""
    exact = logits.detach().double()
    probabilities = torch.sigmoid(exact) if exact.numel() == 1 else torch.softmax(exact, dim=0)
    order = torch.argsort(torch.nan_to_num(exact, nan=-torch.inf), descending=True, stable=True)
    named = categories if len(categories) == exact.numel() else ()
    return tuple(
        Score(
            index=index,
            name=named[index] if named else None,
            logit=float(exact[index]),
            probability=float(probabilities[index]),
        )
        for index in order.tolist()
    )


def versions() -> tuple[tuple[str, str], ...]:
    """What computed this, for repeating it."""
    found = []
    for name in ("model-inspector", "torch", "torchvision", "pillow"):
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


def _explanation(
    model: nn.Module,
    batch: Tensor,
    maps: Maps,
    index: int,
    crop: Crop,
    preprocessing: Preprocessing,
    method: str,
    categories: Sequence[str],
    top: int,
    seconds: float,
) -> Explanation:
    raw: np.ndarray[tuple[int, int], np.dtype[np.float32]] = maps.raw[index].float().numpy().copy()
    finite = raw[np.isfinite(raw)].astype(np.float64)
    mass = float(np.abs(finite).sum())
    scores = scores_of(maps.logits[index], categories)
    target = next(score for score in scores if score.index == int(maps.targets[index]))
    return Explanation(
        heat=maps.heat[index].float().clamp(0, 1).numpy().copy(),
        raw=raw,
        method=method,
        layer=maps.layer,
        target=target,
        scores=scores[: max(top, 1)],
        raw_minimum=float(finite.min()) if finite.size else float("nan"),
        raw_maximum=float(finite.max()) if finite.size else float("nan"),
        negative_share=float(np.abs(finite[finite < 0]).sum() / mass) if mass > 0 else 0.0,
        preprocessing=preprocessing,
        crop=crop,
        findings=judge(model, batch[index : index + 1], maps, index, target),
        versions=versions(),
        seconds=seconds,
    )
