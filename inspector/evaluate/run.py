"""A model that runs on pictures in class folders: scored once each, then summed up."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from inspector.cam.runs import ReadyModel
from inspector.cam.sweeping.run import Running
from inspector.cam.targets.answers import AnswerKind
from inspector.errors import UsageError
from inspector.evaluate.labels import ClassFolders, open_class_folders
from inspector.evaluate.mapping import ClassMap, map_classes
from inspector.evaluate.report import Evaluated, Evaluation
from inspector.evaluate.scores import PictureScores, answer_to_noise, assembled, head_size, score_pictures
from inspector.evaluate.summarise import summarise
from inspector.progress import Progress, silent
from inspector.sweep.store import Kept

_REFUSED = {
    AnswerKind.SEVERAL: "several labels at once",
    AnswerKind.NUMBERS: "plain numbers, as a regression gives them",
}


def evaluate_pictures(
    ready: ReadyModel,
    data: ClassFolders | Path | str,
    *,
    store: Kept | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Scores, figures, curves and worst cases of a model on class folders, as torchvision's ImageFolder lists them.

    ready: as `ready_model` gives it; its class names say which folder is which output. data: a folder, a zip or tar of
    one, or what `open_class_folders` opened. store: what keeps scores (`open_store`), so that a second call goes on
    where the first was stopped, and of the same model and pictures scores nothing again.
    Raises ReadError, UsageError where labels do not fit the head (both lists are in it), ExplainError where the model
    gives no scores. The model is left as it was.
    """
    folders = data if isinstance(data, ClassFolders) else open_class_folders(Path(data))
    found, mapping = score_model(ready, folders, Running(store=store), progress=progress)
    return summarise(found.values, found.unread, folders.listing, mapping, evaluated(ready), progress=progress)


def score_model(
    ready: ReadyModel, folders: ClassFolders, running: Running | None = None, *, progress: Progress = silent
) -> tuple[PictureScores, ClassMap]:
    """The first half: every score, and which folder is which output. running: None for here, with nothing kept. Raises
    as `evaluate_pictures`, and as `score_pictures`."""
    answer, mapping = mapped(ready, folders)
    running = running or Running()
    scored = score_pictures(ready, folders, answer, running, progress=progress)
    return assembled(scored, len(folders.listing.paths), len(mapping.names), running.piece), mapping


def mapped(ready: ReadyModel, folders: ClassFolders) -> tuple[Tensor, ClassMap]:
    """What the model answers to noise, and which folder is which output. Raises UsageError, ExplainError."""
    if ready.answer in _REFUSED:
        raise UsageError(
            f"The file states that its answer is {_REFUSED[ready.answer]}; class folders have one class for each "
            "picture.",
        )
    answer = answer_to_noise(ready.model, ready.preprocessing)
    return answer, map_classes(folders.listing.classes, int(answer.shape[1]), ready.class_names)


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
