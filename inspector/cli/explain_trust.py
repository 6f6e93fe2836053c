"""--trust: what is measured of one map or of several pictures, and what that will cost."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from inspector.cli.options import progress_bar
from inspector.errors import InspectorError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

    from inspector.cam.describe import Setting
    from inspector.cam.exporting.request import Request
    from inspector.cam.report import Estimate
    from inspector.cam.runs import ReadyModel
    from inspector.cam.spec import MapRequest
    from inspector.cam.trust.assess import Trust
    from inspector.cam.trust.pictures import TrustOfPictures
    from inspector.cli.explaining import Files

# An estimate below this many seconds is not worth a line.
_SLOW = 10.0


def check_trust(*, trust: bool, one_map: bool, single: bool, mask: Path | None, table: Path | None) -> None:
    """one_map: of each picture. single: of one picture alone."""
    if trust and not one_map:
        raise UsageError(
            "Trust is measured of one map.", hint="Give one method, one layer, one class for each picture."
        )
    if mask is not None and not trust:
        raise UsageError("A mask is for measuring.", hint="Give --trust too.")
    if mask is not None and not single:
        raise UsageError("A mask is of one picture.", hint="Leave --mask out for several.")
    if table is not None and not trust:
        raise UsageError("--trust-csv is for what is measured.", hint="Give --trust too.")


def announce(passes: int, seconds: float) -> None:
    if seconds >= _SLOW:
        typer.echo(f"About {passes:,} passes, {seconds:.0f} s. Ctrl-C stops.", err=True)


def estimate_of_trust(loaded: ReadyModel, request: Request, setting: Setting) -> Estimate:
    from inspector.cam.report import Estimate
    from inspector.cam.trust.cost import WHOLE
    from inspector.cam.trust.pictures import PLAN, cost_of_pictures

    plan = WHOLE if len(request.pictures) == 1 else PLAN
    found = cost_of_pictures(
        loaded.model, _named(request), _map_request(request), setting, target=_class(request), plan=plan
    )
    return Estimate(passes=found.passes, by_method=(), seconds=found.seconds)


def measured_picture(loaded: ReadyModel, request: Request, setting: Setting, files: Files, mask: Path | None) -> Trust:
    from inspector.cam.inputs.picture import open_picture, upright
    from inspector.cam.trust.assess import assess, cost
    from inspector.cam.trust.masks import mask_seen
    from inspector.cam.trust.pictures import map_to_measure

    picture = open_picture(Path(request.pictures[0]))
    batch, crop, maker = map_to_measure(loaded.model, picture, files.kept[0][1], setting)
    inside = None
    if mask is not None:
        inside = mask_seen(upright(open_picture(mask)), crop, (batch.shape[2], batch.shape[3]))
    costs = cost(loaded.model, batch, maker)
    announce(costs.passes, costs.seconds)
    bar = progress_bar("measuring")
    return assess(loaded.model, batch, maker, mask=inside, answer=setting.answer, timed=costs.pace, progress=bar)


def measured_pictures(loaded: ReadyModel, request: Request, setting: Setting) -> TrustOfPictures:
    from inspector.cam.trust.pictures import assess_pictures

    # Where none of them can be read there is nothing to announce, and the report says why.
    with suppress(InspectorError):
        cost = estimate_of_trust(loaded, request, setting)
        announce(cost.passes, cost.seconds)
    return assess_pictures(
        loaded.model,
        _named(request),
        _map_request(request),
        setting,
        target=_class(request),
        progress=progress_bar("measuring"),
    )


def _named(request: Request) -> list[tuple[str, Callable[[], Image]]]:
    from inspector.cam.inputs.picture import open_picture

    return [(Path(name).name, partial(open_picture, Path(name))) for name in request.pictures]


def _map_request(request: Request) -> MapRequest:
    from inspector.cam.spec import MapRequest

    return MapRequest(method=request.methods[0], layers=request.layers, options=request.options)


def _class(request: Request) -> int | None:
    return request.classes[0] if request.classes else None
