"""A model that runs on pictures in class folders: scored once each, then summed up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from inspector.cam.describe import versions
from inspector.cam.runs import ReadyModel
from inspector.cam.targets.answers import AnswerKind
from inspector.errors import UsageError
from inspector.evaluate.keeping import Keeper, Nowhere
from inspector.evaluate.labels import ClassFolders, open_class_folders
from inspector.evaluate.mapping import ClassMap, map_classes
from inspector.evaluate.report import Evaluated, Evaluation
from inspector.evaluate.scores import PictureScores, head_size, score_pictures
from inspector.evaluate.summarise import summarise
from inspector.progress import Progress, silent

_REFUSED = {
    AnswerKind.SEVERAL: "several labels at once",
    AnswerKind.NUMBERS: "plain numbers, as a regression gives them",
}


def evaluate_pictures(
    ready: ReadyModel,
    data: ClassFolders | Path | str,
    *,
    keeper: Callable[[str], Keeper] | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Scores, figures, curves and worst cases of a model on class folders, as torchvision's ImageFolder lists them.

    ready: as `ready_model` gives it; its class names say which folder is which output. data: a folder, a zip or tar of
    one, or what `open_class_folders` opened. keeper: what keeps scores under a key while this runs, so that a second
    call goes on where the first was stopped.
    Raises ReadError, UsageError where labels do not fit the head (both lists are in it), ExplainError where the model
    gives no scores. The model is left as it was.
    """
    folders = data if isinstance(data, ClassFolders) else open_class_folders(Path(data))
    found, mapping = score_model(ready, folders, keeper=keeper, progress=progress)
    return summarise(found.values, found.unread, folders.listing, mapping, evaluated(ready), progress=progress)


def score_model(
    ready: ReadyModel,
    folders: ClassFolders,
    *,
    keeper: Callable[[str], Keeper] | None = None,
    progress: Progress = silent,
) -> tuple[PictureScores, ClassMap]:
    """The first half: every score, and which folder is which output. Raises as `evaluate_pictures`."""
    if ready.answer in _REFUSED:
        raise UsageError(
            f"The file states that its answer is {_REFUSED[ready.answer]}; class folders have one class for each "
            "picture.",
        )
    outputs = outputs_of(ready)
    mapping = map_classes(folders.listing.classes, outputs, ready.class_names)
    key = scores_key(ready, folders.listing.digest)
    found = score_pictures(
        ready.model,
        folders,
        ready.preprocessing,
        keeper(key) if keeper is not None else Nowhere(),
        outputs=outputs,
        key=key,
        progress=progress,
    )
    return found, mapping


def outputs_of(ready: ReadyModel) -> int:
    """Of its head; runs it once."""
    return head_size(ready.model, ready.preprocessing)


def evaluated(ready: ReadyModel) -> Evaluated:
    """The model as a report names it."""
    return Evaluated(
        name=ready.name,
        sha256=ready.sha256,
        architecture=ready.architecture,
        weights=ready.weights,
        preprocessing=ready.preprocessing,
    )


def scores_key(ready: ReadyModel, digest: str) -> str:
    """What scores depend on: the weights, the architecture, the preprocessing, the pictures, what computes."""
    asked = (ready.sha256, ready.weights, ready.architecture, ready.preprocessing, digest, versions())
    return hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()
