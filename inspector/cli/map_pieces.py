"""`explain` by pieces: a heat map of each of many pictures, kept small, wherever pieces run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.options import progress_bar, show
from inspector.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.cam.describe import Setting
    from inspector.cam.exporting.request import Request
    from inspector.cam.runs import ReadyModel
    from inspector.cam.sweeping.maps import PictureMap
    from inspector.cam.sweeping.run import Running
    from inspector.cli.explaining import Files
    from inspector.sweep.piece import Part


def check_pieces(part: Part, store: str, *, one_map: bool, more: bool, places: bool) -> None:
    """Raise UsageError for what is not done by pieces. more: a series, a measurement or an estimate is asked for.
    places: files are to be written."""
    if not one_map or more:
        raise UsageError(
            "By pieces each picture has one map: one method, one layer, one class, no fusion.",
            hint="Leave --store, --executor, --jobs and --part out for grids, series, --trust and --estimate.",
        )
    if part.of > 1 and not store:
        raise UsageError("A part is kept in a store.", hint="Name one for all parts: --store DIR.")
    if part.of > 1 and places:
        raise UsageError(
            "A part writes into its store alone.",
            hint="Once all parts have ended, the same line without --part makes no map again and writes.",
        )


@contextmanager
def running_in(
    request: Request, preprocessing: str, *, executor: str, jobs: int, store: str, part: Part
) -> Iterator[Running]:
    """Where the pieces run. Raises as `engine_of` and `open_store`."""
    from inspector.cam.sweeping.run import Running
    from inspector.cli.explaining import load
    from inspector.sweep.engines import engine_of
    from inspector.sweep.store import open_store

    # A worker may have been started elsewhere.
    place = request.file if "://" in request.file else os.path.abspath(request.file)
    reopen = partial(
        load, place, state=request.state, target=request.target, preprocessing=preprocessing, names="", answer=None
    )
    kept = open_store(store) if store else None
    with engine_of(executor, jobs) as engine:
        yield Running(engine=engine, store=kept, part=part, reopen=reopen)


def each_by_pieces(loaded: ReadyModel, request: Request, setting: Setting, files: Files, running: Running) -> None:
    """The maps into the files, in the order of the pictures."""
    from inspector.cam.inputs.picture import open_picture
    from inspector.errors import ExplainError

    for found in _found(loaded, request, setting, running):
        path = Path(request.pictures[found.number])
        if found.made is None:
            files.fail(path.name, ExplainError(found.error))
            continue
        picture = open_picture(path) if files.shows_next else None
        files.add(picture, path.name, found.made, number=found.number, beside=False)


def map_part(loaded: ReadyModel, request: Request, setting: Setting, running: Running, *, as_json: bool) -> int:
    """One part into its store, and what became of it."""
    results = list(_small(_found(loaded, request, setting, running)))
    unread = [(request.pictures[number], why) for number, why in results if why]
    part = running.part
    report = {
        "part": part.number,
        "of": part.of,
        "pictures": len(results),
        "listed": len(request.pictures),
        "unread": unread,
    }
    show(report, lambda: _text(part, len(results) - len(unread), len(request.pictures), len(unread)), as_json=as_json)
    return 1 if unread else 0


def _small(found: Iterator[PictureMap]) -> Iterator[tuple[int, str]]:
    """Without the maps, which are in the store."""
    for one in found:
        yield one.number, one.error


def _found(loaded: ReadyModel, request: Request, setting: Setting, running: Running) -> Iterator[PictureMap]:
    from inspector.cam.spec import MapRequest
    from inspector.cam.sweeping.maps import map_pictures

    asked = MapRequest(method=request.methods[0], layers=request.layers, options=request.options)
    target = request.classes[0] if request.classes else None
    pictures = [Path(name) for name in request.pictures]
    bar = progress_bar("explaining")
    return map_pictures(loaded, pictures, asked, setting, running, target=target, progress=bar)


def _text(part: Part, made: int, listed: int, unread: int) -> RenderableType:
    from inspector.render.text import safe
    from inspector.units import counted

    says = f"Part {part.number} of {part.of}: {counted(made, 'map')} of {listed:,} pictures"
    if unread:
        says += f", {counted(unread, 'picture has', 'pictures have')} none"
    return safe(f"{says}. Once all parts have ended, the same line without --part writes what is asked for.")
