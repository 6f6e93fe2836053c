"""Maps of several pictures as they are made: one of each, or a grid of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from torch import nn

from inspector.cam.describe import Setting
from inspector.cam.engine.maps import Axes
from inspector.cam.explain import explain_many
from inspector.cam.grid import explain_grid
from inspector.cam.inputs.picture import open_picture
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import Explanation, Options
from inspector.cam.spec import MapRequest
from inspector.errors import InspectorError, UsageError
from inspector.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureMaps:
    """What became of one picture.

    number: its position in what was given. picture: None where it cannot be read, as error says. cells:
    [class][layer][method], None where a method has no map at a layer. refused: (method, layer, why) of these.
    """

    number: int
    picture: Image.Image | None = None
    cells: tuple[tuple[tuple[Explanation | None, ...], ...], ...] = ()
    refused: tuple[tuple[str, str, str], ...] = ()
    error: InspectorError | None = None


def explain_pictures(
    model: nn.Module,
    pictures: Sequence[Path],
    axes: Axes,
    setting: Setting,
    *,
    options: Options,
    progress: Progress = silent,
) -> Iterator[PictureMaps]:
    """One map of each picture where the axes have one or a fusion makes one of them, else a grid of each.

    What cannot be read is said in its place, among several; one alone is raised. Raises UsageError for axes that no
    fusion is of.
    """
    opened = _Opened(pictures, setting, progress)
    if not options.fusion and max(map(len, (axes.methods, axes.layers or (), axes.classes))) > 1:
        for picture in opened:
            grid = explain_grid(model, picture, axes, setting, options=options, progress=progress)
            yield from opened.failed()
            number, _ = opened.waiting.pop(0)
            yield PictureMaps(number=number, picture=picture, cells=grid.cells, refused=grid.refused)
        yield from opened.failed()
        return
    if len(axes.methods) > 1 or len(axes.classes) > 1:
        raise UsageError("A fusion is of one method and one class.", hint="Leave --fuse out for a grid.")
    request = MapRequest(method=axes.methods[0], layers=tuple(axes.layers or ()), options=options)
    # Several pictures are counted as they are opened.
    inside = progress if len(pictures) == 1 else silent
    for explanation in explain_many(model, opened, request, setting, targets=axes.classes[0], progress=inside):
        yield from opened.failed()
        number, picture = opened.waiting.pop(0)
        yield PictureMaps(number=number, picture=picture, cells=(((explanation,),),))
    yield from opened.failed()


class _Opened:
    """Those of the pictures that can be read, one after the other. waiting: (number, picture) of those given out."""

    def __init__(self, paths: Sequence[Path], setting: Setting, progress: Progress) -> None:
        self._paths = paths
        self._setting = setting
        self._progress = progress
        self._failed: list[PictureMaps] = []
        self.waiting: list[tuple[int, Image.Image]] = []

    def __iter__(self) -> Iterator[Image.Image]:
        for number, path in enumerate(self._paths):
            self._progress(number, len(self._paths), path.name)
            try:
                picture = open_picture(path)
                # A picture that cannot be prepared must not end the others.
                prepare(picture, self._setting.preprocessing)
            except InspectorError as error:
                if len(self._paths) == 1:
                    raise
                self._failed.append(PictureMaps(number=number, error=error))
                continue
            self.waiting.append((number, picture))
            yield picture

    def failed(self) -> Iterator[PictureMaps]:
        """Those that were met since the last call."""
        failed, self._failed = self._failed, []
        yield from failed
