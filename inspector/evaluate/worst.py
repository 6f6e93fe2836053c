"""Where the model looked in the pictures that it got wrong: a map of the class that it answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL import Image

from inspector.cam.describe import Setting
from inspector.cam.explain import explain_many
from inspector.cam.inputs.picture import open_picture
from inspector.cam.report import Explanation
from inspector.cam.runs import ReadyModel
from inspector.cam.spec import MapRequest
from inspector.errors import InspectorError
from inspector.evaluate.labels import ClassFolders
from inspector.evaluate.report import PictureResult
from inspector.progress import Progress, silent

# As the Explain page begins.
METHOD = "grad-cam"


def map_worst(
    ready: ReadyModel,
    folders: ClassFolders,
    results: Sequence[PictureResult],
    names: Sequence[str],
    *,
    method: str = METHOD,
    progress: Progress = silent,
) -> Iterator[tuple[PictureResult, Image.Image, Explanation | None]]:
    """(result, picture, the map of its answer) of each that can still be read; None where there is no map of it.

    names: of the outputs.
    """
    setting = Setting(preprocessing=ready.preprocessing, categories=tuple(names))
    request = MapRequest(method=method)
    for number, result in enumerate(results):
        progress(number, len(results), result.path)
        try:
            picture = open_picture(folders.read(result.path))
        except InspectorError:
            continue
        explanation: Explanation | None = None
        try:
            (explanation,) = explain_many(ready.model, [picture], request, setting, targets=result.answer)
        except InspectorError:
            explanation = None  # a model without maps, or too large a picture: it is shown without
        yield result, picture, explanation
