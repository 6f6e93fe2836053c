"""Maps that are measured in tests, by the few words that a test has for them."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from inspector.cam.engine.tensors import shape_of
from inspector.cam.report import PLAIN, LayerProposal, Options
from inspector.cam.spec import MapRequest
from inspector.cam.trust.assess import Cost, Trust, assess, cost
from inspector.cam.trust.cost import Plan
from inspector.cam.trust.making import Maker


def maker(
    model: nn.Module,
    picture: Tensor,
    *,
    layer: LayerProposal | str | None = None,
    layers: tuple[str, ...] = (),
    target: int | None = None,
    method: str = "grad-cam",
    options: Options = PLAIN,
) -> Maker:
    """layers: those of a fusion; layer: the one otherwise, None for the suggested one."""
    wanted = layers if options.fusion else () if layer is None else (layer,)
    spec = MapRequest(method=method, layers=wanted, options=options).at(model, shape_of(picture))
    return Maker(method=spec.method, layers=spec.layers, options=spec.options, target=target)


def assessed(model: nn.Module, picture: Tensor, **asked: Any) -> Trust:
    """`assess` of such a map, with the fields of a `Plan` beside its own arguments."""
    own = {name: asked.pop(name) for name in ("mask", "answer", "timed", "progress") if name in asked}
    plan = Plan(**{name: asked.pop(name) for name in ("measures", "randomise", "compare") if name in asked})
    return assess(model, picture, maker(model, picture, **asked), plan=plan, **own)


def priced(model: nn.Module, picture: Tensor, **asked: Any) -> Cost:
    """The same of `cost`."""
    plan = Plan(**{name: asked.pop(name) for name in ("measures", "randomise", "compare") if name in asked})
    return cost(model, picture, maker(model, picture, **asked), plan=plan)
