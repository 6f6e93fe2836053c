"""What `evaluate` writes: the report, tables, scores, the worst cases; and scores on the way, to go on from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inspector.cli.output import check_place, written_whole
from inspector.errors import ExportError
from inspector.render.evaluation import classes_table, pictures_csv, pictures_table, tsv_text
from inspector.side_files import reason_of, shown_name
from inspector.sweep.blobs import FolderBlobs
from inspector.sweep.store import ResultStore

if TYPE_CHECKING:
    from inspector.cam.runs import ReadyModel
    from inspector.evaluate.labels import ClassFolders
    from inspector.evaluate.report import Evaluation

# Scores on the way, where no store was named.
_SCORES = ".scores"
# Of a sheet of the worst cases.
_ACROSS = 6


class Files:
    """folder: where all goes, None for nowhere. inputs: what must not be written over. written: names, as they come."""

    def __init__(self, folder: Path | None, *, inputs: Sequence[str], above: Files | None = None) -> None:
        self.folder = folder
        self.inputs = tuple(inputs)
        self.written: list[str] = above.written if above is not None else []
        self._top: Path | None = above._top if above is not None else folder
        self._kept: ResultStore | None = None
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except (OSError, ValueError) as error:
                raise ExportError(f"{shown_name(folder)} cannot be made a folder: {reason_of(error)}.") from error

    def below(self, name: str) -> Files:
        """The same for another checkpoint, in a folder inside this one."""
        return Files(self.folder and self.folder / name, inputs=self.inputs, above=self)

    def keep_scores(self) -> ResultStore | None:
        """Where scores are kept while the work is under way, None for nowhere."""
        if self.folder is not None:
            # Of this command alone, and not there before the first of them.
            self._kept = ResultStore(FolderBlobs(self.folder / _SCORES))
        return self._kept

    def drop_scores(self) -> None:
        """The work has ended well: nothing is left to go on with."""
        if self._kept is None or self.folder is None:
            return
        for folder in (self.folder / _SCORES / "results", self.folder / _SCORES):
            for file in folder.glob("*"):
                if file.is_file():
                    file.unlink()
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def write_report(self, report: Evaluation, scores: NDArray[np.float32]) -> None:
        """Everything as JSON, pictures as CSV, both tables as TSV, scores as (N, K) with a row for each listed picture,
        sorted by class and name, NaN where it could not be read."""
        if self.folder is None:
            return
        self.write_json("evaluation.json", report)
        self.write(self.folder / "pictures.csv", pictures_csv(report).encode())
        self.write(self.folder / "pictures.tsv", tsv_text(*pictures_table(report)).encode())
        self.write(self.folder / "classes.tsv", tsv_text(*classes_table(report)).encode())
        with self._place(self.folder / "scores.npy") as temporary:
            written = np.lib.format.open_memmap(temporary, mode="w+", dtype=scores.dtype, shape=scores.shape)
            written[:] = scores
            written.flush()
            del written

    def write_worst(self, ready: ReadyModel, folders: ClassFolders, report: Evaluation) -> None:
        """A contact sheet of wrong answers with heat maps of what was answered."""
        if self.folder is None or not report.worst:
            return
        from inspector.evaluate.worst import map_worst
        from inspector.render.overlay import png_bytes
        from inspector.render.sheet import cell_of, sheet
        from inspector.units import human_share

        names = report.mapping.names
        cells = []
        for result, picture, explanation in map_worst(ready, folders, report.worst, names):
            says = f"{names[result.label]} taken for {names[result.answer]}, {human_share(result.confidence)} sure"
            lines = (result.path, says)
            cells.append(cell_of(picture, explanation, lines))
        rows = [cells[start : start + _ACROSS] for start in range(0, len(cells), _ACROSS)]
        if rows:
            self.write(self.folder / "worst.png", png_bytes(sheet(rows)))

    def write_json(self, name: str, report: object) -> None:
        """A report as strict JSON."""
        from inspector.render.json import as_json

        if self.folder is not None:
            self.write(self.folder / name, (as_json(report) + "\n").encode())

    def write(self, path: Path, data: bytes) -> None:
        """A file that is whole or not there."""
        with self._place(path) as temporary:
            temporary.write_bytes(data)

    @contextmanager
    def _place(self, path: Path) -> Iterator[Path]:
        check_place(path, self.inputs)
        with written_whole(path) as temporary:
            yield temporary
        inside = self._top is not None and path.is_relative_to(self._top)
        self.written.append(path.relative_to(self._top).as_posix() if self._top and inside else path.name)
