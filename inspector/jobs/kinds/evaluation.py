"""A checkpoint on pictures in class folders: listed, scored with pieces kept in the store, worst cases pictured."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np

from inspector.cam.report import Preprocessing
from inspector.cam.runs import ReadyModel
from inspector.errors import ReadError
from inspector.evaluate.labels import ClassFolders, open_class_folders
from inspector.evaluate.report import Evaluation, PictureResult
from inspector.evaluate.run import evaluate_pictures
from inspector.evaluate.scores import head_size, scores_nbytes
from inspector.evaluate.worst import map_worst
from inspector.jobs.asked import DataFacts, DataRef, HeadFacts, WorstCase
from inspector.jobs.bench import Bench
from inspector.jobs.kind import MB
from inspector.jobs.kinds.files import ready_of
from inspector.jobs.results import Results
from inspector.jobs.subjects import FileRef, Naming
from inspector.render.overlay import overlay
from inspector.render.screen import at_screen_size, scaled_to

# Longer side of a worst case as a page shows it.
_SIDE = 320
# Scores that fit into every such job's own allowance.
_SMALL_NBYTES = 50 * MB
# The scores, those of finite rows, and columns of them in float64.
_COPIES = 3


class _Kept:
    """Scores among the kept results, as `inspector.sweep.store.Kept`."""

    distant = False

    def __init__(self, results: Results) -> None:
        self._results = results

    def load(self, question: str, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
        for key in wanted:
            data = self._results.read(_place(question, key))
            if data is not None:
                yield key, data

    def put(self, question: str, results: Iterable[tuple[str, bytes]]) -> None:
        for key, data in results:
            self._results.write(_place(question, key), data)


def _place(question: str, key: str) -> str:
    return hashlib.sha256(f"{question}:{key}".encode()).hexdigest()


def listed(bench: Bench, data: DataRef) -> DataFacts:
    """What lies in the class folders. Raises ReadError, UsageError where there are none."""
    found = _open(data).listing
    return DataFacts(
        data=replace(data, digest=found.digest),
        pictures=len(found.paths),
        classes=found.classes,
        empty=found.empty,
        left_out_count=found.left_out_count,
    )


def head(bench: Bench, file: FileRef, preprocessing: Preprocessing) -> HeadFacts:
    """How many classes, and what one picture takes. Raises ExplainError for what gives no scores."""
    model = ready_of(bench, file).model
    outputs = head_size(model, preprocessing)
    # A second pass: the first of a process warms up.
    start = time.perf_counter()
    head_size(model, preprocessing)
    return HeadFacts(outputs=outputs, seconds=time.perf_counter() - start)


def evaluation(bench: Bench, file: FileRef, data: DataRef, preprocessing: Preprocessing, naming: Naming) -> Evaluation:
    """naming: of the outputs, as the visitor has it. Raises as `evaluate_pictures`."""
    folders = _opened(data)
    ready = _ready(bench, file, preprocessing, naming)
    nbytes = scores_nbytes(len(folders.listing.paths), head_size(ready.model, preprocessing))
    if nbytes > _SMALL_NBYTES:
        bench.need(_COPIES * nbytes)
    results = Results(bench.settings.results, bench.settings.results_nbytes)
    return evaluate_pictures(ready, folders, store=_Kept(results), progress=bench.progress)


def worst_cases(
    bench: Bench,
    file: FileRef,
    data: DataRef,
    preprocessing: Preprocessing,
    naming: Naming,
    results: tuple[PictureResult, ...],
) -> tuple[WorstCase, ...]:
    """Each with a map of what was answered."""
    folders, ready = _opened(data), _ready(bench, file, preprocessing, naming)
    found = []
    for result, picture, explanation in map_worst(ready, folders, results, naming.names, progress=bench.progress):
        small = at_screen_size(picture, _SIDE)
        drawn = None if explanation is None else overlay(small, scaled_to(small.size, explanation))
        found.append(WorstCase(result=result, picture=np.asarray(small), overlay=drawn, data=folders.read(result.path)))
    return tuple(found)


def _ready(bench: Bench, file: FileRef, preprocessing: Preprocessing, naming: Naming) -> ReadyModel:
    ready = ready_of(bench, file)
    return replace(ready, preprocessing=preprocessing, class_names=naming.names, answer=naming.answer)


def _open(data: DataRef) -> ClassFolders:
    if not data.path.exists():
        raise ReadError(f"{data.name} is not on the server any more.", hint="Choose the pictures again.")
    return open_class_folders(data.path, name=data.name, digest=data.sha256, follow_links=False)


def _opened(data: DataRef) -> ClassFolders:
    """Raises ReadError where it is not what was listed."""
    found = _open(data)
    if found.listing.digest != data.digest:
        raise ReadError(f"{data.name} has changed since it was listed.", hint="Choose the pictures again.")
    return found
