"""`explain --series`: one picture through several checkpoints, a strip and a table in the order given."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cam.exporting.manifest import Source
from inspector.cam.series import Common, Stage, agreement_with_last, explain_each, on_one_scale
from inspector.render.strip import ACROSS, COLUMNS, strip_cell, strip_columns

if TYPE_CHECKING:
    from PIL import Image

    from inspector.cam.describe import Setting
    from inspector.cam.exporting.request import Request
    from inspector.cam.runs import ReadyModel
    from inspector.cli.explaining import Files
    from inspector.progress import Progress


def each_checkpoint(
    first: list[ReadyModel],
    load: Callable[[str], ReadyModel],
    request: Request,
    setting: Setting,
    files: Files,
    *,
    by_hand: bool,
    progress: Progress,
) -> list[Source]:
    """The maps into the files; what is none of the run is a problem there. Returns the checkpoints as sources.

    first: the one that the others are held against; it is taken out, so that one model is held at a time. by_hand: the
    preprocessing was given. Raises what the first one meets where no checkpoint gives a map.
    """
    from inspector.cam.inputs.picture import open_picture
    from inspector.cam.spec import MapRequest

    one = first[0]
    common = Common(
        architecture=one.architecture,
        setting=setting if request.names else replace(setting, categories=()),
        own=None if by_hand else one.preprocessing,
        stated=one.class_names,
        own_answer=one.answer,
    )
    del one
    picture = open_picture(Path(request.pictures[0]))
    opening: list[tuple[str, Callable[[], ReadyModel]]] = [(Path(request.file).name, first.pop)]
    opening += [(Path(name).name, partial(load, name)) for name in request.series]
    asked = MapRequest(method=request.methods[0], layers=request.layers, options=request.options)
    target = request.classes[0] if request.classes else None
    stages = list(explain_each(opening, picture, common, asked, target=target, progress=progress))
    _write(stages, request, files, picture)
    return [
        Source(name=name, sha256=stage.sha256)
        for name, stage in zip((request.file, *request.series), stages, strict=True)
    ]


def _write(stages: list[Stage], request: Request, files: Files, picture: Image.Image) -> None:
    maps = [stage.made for stage in stages if stage.made is not None]
    if not maps and stages[0].error is not None:
        raise stages[0].error
    agreement = iter(agreement_with_last(maps))
    drawn = iter(on_one_scale(maps) if request.common_scale else maps)
    files.columns = COLUMNS
    for number, stage in enumerate(stages):
        if stage.made is None:
            assert stage.error is not None
            files.fail(stage.name, stage.error, checkpoint=number, more=strip_columns(stage.place, math.nan))
            continue
        cell = strip_cell(
            picture,
            next(drawn),
            name=stage.name,
            place=stage.place,
            one_scale=request.common_scale,
            colour_map=request.colour_map,
            opacity=request.opacity,
            blend=request.blend,
        )
        files.add(
            picture,
            stage.name,
            stage.made,
            checkpoint=number,
            beside=sum(map(len, files.cells)) % ACROSS != 0,
            cell=cell,
            more=strip_columns(stage.place, next(agreement)),
        )
