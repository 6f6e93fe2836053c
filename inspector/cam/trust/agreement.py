"""Do the methods agree: how alike they rank the places of one picture, for the same layer, class and options."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from inspector.cam.engine.maps import Axes, heat_grid
from inspector.cam.method import Method
from inspector.cam.methods import METHODS, method_named
from inspector.cam.report import Maps
from inspector.cam.trust.correlation import rank_correlation
from inspector.cam.trust.making import Maker
from inspector.errors import ExplainError
from inspector.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """methods: ids, the measured map's own first. correlations: Spearman's of each with each, of maps before ReLU; NaN
    where one of the two is constant."""

    methods: tuple[str, ...]
    correlations: tuple[tuple[float, ...], ...]


def compared_methods(own: str) -> tuple[Method, ...]:
    """Those beside the map's own that are arithmetic on a layer."""
    return tuple(m for m in METHODS if m.arithmetic is not None and m.by_layer and m.id != own)


def agreement(
    model: nn.Module, picture: Tensor, maker: Maker, own: Tensor, progress: Progress = silent
) -> Agreement | None:
    """own: (h, w), the map that is measured, before ReLU; the others are made as it was.

    A map on another grid is brought to that of the others. None where the map is of no layer: then there is nothing
    that the methods share.
    """
    if not method_named(maker.method).by_layer:
        return None
    others = compared_methods(maker.method)
    maps = {maker.method: own}
    if maker.options.fusion or maker.options.augmented:
        for number, method in enumerate(others):
            progress(number, len(others), "asking the other methods")
            try:
                made = maker.by(method.id)(model, picture, progress=_pause(progress, number, len(others)))
            except ExplainError:
                continue
            maps[method.id] = made.raw[0]
    else:
        progress(0, 2, "asking the other methods")
        maps |= _at_once(model, picture, maker, [method.id for method in others])
        progress(1, 2, "asking the other methods")
    sizes = [tuple(one.shape) for one in maps.values()]
    size = sizes[-1]
    ranked = [_to(one, size) for one in maps.values()]
    values = [[1.0] * len(ranked) for _ in ranked]
    for i, one in enumerate(ranked):
        progress(len(ranked) + i, 2 * len(ranked), "comparing the methods")
        for j in range(i + 1):
            values[i][j] = values[j][i] = rank_correlation(one, ranked[j])
    return Agreement(methods=tuple(maps), correlations=tuple(tuple(row) for row in values))


def _at_once(model: nn.Module, picture: Tensor, maker: Maker, methods: list[str]) -> dict[str, Tensor]:
    """All of them from one forward; what has no map at this layer of this model is left out."""
    axes = Axes(layers=maker.layers, methods=methods, classes=[maker.target])
    ((row,),) = heat_grid(model, picture, axes, options=maker.options, read=maker.read, lenient=True)
    return {cell.method: cell.raw[0] for cell in row if isinstance(cell, Maps)}


def _pause(progress: Progress, done: int, total: int) -> Progress:
    return lambda _done, _total, note: progress(done, total, note)


def _to(one: Tensor, size: tuple[int, ...]) -> Tensor:
    if tuple(one.shape) == size:
        return one
    return functional.interpolate(
        one[None, None].double(), size=list(size), mode="bilinear", align_corners=False, antialias=True
    )[0, 0]
