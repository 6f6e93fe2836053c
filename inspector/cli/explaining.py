"""What `explain` loads, runs and writes: checkpoints to models, pictures to maps, maps to files."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inspector.architectures.types import TargetKind
from inspector.cam.exporting.arrays import NpzWriter
from inspector.cam.exporting.manifest import Entry, Source, entry_of, manifest_of
from inspector.cam.exporting.request import Request, settled
from inspector.cam.layers.layouts import layer_name
from inspector.cli.ending import set_output_aside
from inspector.cli.options import find_target, open_file, pick_state, recognised
from inspector.cli.output import check_place, written_whole
from inspector.errors import ExportError, InspectorError, UsageError
from inspector.render.explained_table import Row, row_of, row_of_error, table_csv
from inspector.render.overlay import heat_picture, overlay, png_bytes
from inspector.render.scores import share_text
from inspector.render.sheet import MOST_CELLS, Cell, cell_of, findings_line, sheet
from inspector.side_files import PathKind, kind_of_path, read_text, reason_of, shown_name

if TYPE_CHECKING:
    from PIL import Image

    from inspector.cam.picture_maps import PictureMaps
    from inspector.cam.report import Explanation
    from inspector.cam.runs import ReadyModel
    from inspector.cam.targets.answers import AnswerKind
    from inspector.cam.targets.questions import Question
    from inspector.cam.trust.assess import Trust
    from inspector.cam.trust.pictures import TrustOfPictures

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")


def load(
    file: str, *, state: str, target: str, preprocessing: str, names: str, answer: AnswerKind | None = None
) -> ReadyModel:
    """The file as a model, and what the person says of it in place of what is inferred.

    preprocessing: JSON, "" for what can be inferred. names: a file of class names, "" likewise. answer: how the scores
    are meant, None for what the file says; one that is said here is not stated by the file.
    """
    from inspector.cam.inputs.preprocess import stated_preprocessing
    from inspector.ready import ready_model

    # What the person gave is read before the work: a wrong name should not cost them a minute.
    called = names_of(names) if names else ()
    given = stated_preprocessing(_parsed(preprocessing), "given with --preprocessing") if preprocessing else None
    checkpoint = open_file(file, digest=True)
    chosen = pick_state(checkpoint, state)
    recognition = recognised(checkpoint, chosen)
    goal = find_target(target, checkpoint, chosen)
    if goal.kind is TargetKind.CODE:
        set_output_aside()
    ready = ready_model(checkpoint, goal, state=chosen, recognition=recognition)
    steps = ready.preprocessing
    if given is not None and given.channels != steps.channels:
        raise UsageError(f"--preprocessing has {given.channels} means; this model takes {steps.channels} channels.")
    return replace(
        ready,
        preprocessing=given or steps,
        class_names=called or ready.class_names,
        answer=None if answer else ready.answer,
    )


def pictures_in(given: Sequence[Path]) -> tuple[Path, ...]:
    """The pictures themselves, and those that lie in the folders, by name."""
    found: list[Path] = []
    for path in given:
        kind = kind_of_path(path)
        if kind is PathKind.FOLDER:
            inside = sorted(p for p in path.iterdir() if p.suffix.lower() in ENDINGS and p.is_file())
            if not inside:
                raise UsageError(f"{path.name} holds no pictures.", hint=f"Looked for {', '.join(ENDINGS)}.")
            found += inside
        elif kind is PathKind.NOTHING:
            name = shown_name(path)
            raise UsageError(f"There is no picture {name}.", hint="Give a picture, or a folder of pictures.")
        else:
            found.append(path)  # what is no regular file is refused where it is opened
    if not found:
        raise UsageError("Which picture?", hint="inspector explain FILE PICTURE")
    return tuple(found)


def names_of(where: str) -> tuple[str, ...]:
    """Class names from a file ("-": standard input): JSON (a list, or index to name), or a name in each line; or a
    well-known list by its id, where no file is called so."""
    from inspector.cam.inputs.class_lists import list_named
    from inspector.cam.inputs.classes import names_in_text

    known = list_named(where)
    if known is not None and kind_of_path(Path(where)) is PathKind.NOTHING:
        return known.names()
    text = read_text(where, "list of names", hint="One name in each line, or JSON.")
    found = names_in_text(text, Path(where).suffix.lower())
    if not found:
        raise UsageError(f"{shown_name(where)} holds no class names.", hint="One name in each line, or JSON.")
    return found


def question_of(pixels_of: int | None, box: str) -> Question:
    """box: "1", "1:17" with a class, or "left,top,right,bottom", also with a class behind a colon."""
    from inspector.cam.targets.questions import A_CLASS, OfBox, OfPixels

    if pixels_of is not None and box:
        raise UsageError("Pixels of a class or a box: one of them can be explained.")
    if pixels_of is not None:
        return OfPixels(pixels_of)
    if not box:
        return A_CLASS
    place, _, label = box.partition(":")
    try:
        numbers = [float(piece) for piece in place.split(",")]
        wanted = int(label) if label else None
    except ValueError:
        numbers, wanted = [], None
    if len(numbers) == 1 and numbers[0].is_integer() and numbers[0] >= 1:
        return OfBox(rank=int(numbers[0]), label=wanted)
    if len(numbers) == 4:
        return OfBox(corners=(numbers[0], numbers[1], numbers[2], numbers[3]), label=wanted)
    raise UsageError(f"{box!r} is no box.", hint="Write left,top,right,bottom, or 1 for the surest; :17 behind it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where files go. output: an overlay of the only map, else the sheet. maps: NPZ. table: CSV. folder: all of it with
    a manifest. trust: CSV of what was measured."""

    output: Path | None = None
    maps: Path | None = None
    table: Path | None = None
    folder: Path | None = None
    trust: Path | None = None


@dataclass(slots=True, kw_only=True)
class Files:
    """Where maps go as they are made, so that only a thumbnail of each is held. columns: of the table beyond the usual
    ones."""

    request: Request
    single: bool
    places: Places
    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    cells: list[list[Cell]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    kept: list[tuple[str, Explanation]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    _arrays: list[NpzWriter] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Files:
        places = [self.places.output, self.places.maps, self.places.table, self.places.trust]
        if self.places.folder is not None:
            self._make_folder(self.places.folder)
            places.append(self.places.folder / "maps.npz")
        for path in filter(None, places):
            check_place(path, self._inputs)
        with ExitStack() as stack:
            for path in filter(None, (self.places.maps, self.places.folder and self.places.folder / "maps.npz")):
                temporary = stack.enter_context(written_whole(path))
                self._arrays.append(stack.enter_context(NpzWriter(temporary)))
                self.written.append(path.name)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *ending: Any) -> None:
        # What was raised decides whether the files get their names.
        self._stack.__exit__(*ending)

    @property
    def _inputs(self) -> tuple[str, ...]:
        asked = self.request
        return (asked.file, *asked.pictures, *asked.series, asked.target, asked.names)

    @staticmethod
    def _make_folder(folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise ExportError(f"{shown_name(folder)} cannot be made a folder: {reason_of(error)}.") from error

    @property
    def shows_next(self) -> bool:
        """Whether the next map is drawn over its picture."""
        return self.places.folder is not None or (self._draws() and sum(map(len, self.cells)) < MOST_CELLS)

    def add(
        self,
        picture: Image.Image | None,
        name: str,
        found: Explanation,
        *,
        checkpoint: int = 0,
        number: int = 0,
        beside: bool,
        cell: Cell | None = None,
        more: Row = (),
    ) -> None:
        """picture: None where it is not drawn (`shows_next`). name: of it, or of the checkpoint in a series. beside: in
        the row of the one before. cell: as it is drawn on a sheet, None for the usual way. more: what stands behind its
        usual columns."""
        request = self.request
        key = "" if self.single else f"{len(self.entries):04d}_"
        for writer in self._arrays:
            writer.add_map(found, key)
        self.entries.append(entry_of(found, checkpoint=checkpoint, picture=number, key=key))
        checkpoint_name = (request.file, *request.series)[checkpoint]
        picture_name = Path(request.pictures[number]).name
        row = row_of(found, checkpoint=Path(checkpoint_name).name, picture=picture_name, threshold=request.threshold)
        self.rows.append((*row, *more))
        folder = self.places.folder
        if picture is not None and (folder is not None or (self.single and self.places.output is not None)):
            drawn = overlay(picture, found, colour_map=request.colour_map, opacity=request.opacity, blend=request.blend)
            pixels = png_bytes(drawn)
            if self.single and self.places.output is not None:
                self._write(self.places.output, pixels)
            if folder is not None:
                self._write(folder / f"{key}overlay.png", pixels)
                alone = png_bytes(heat_picture(found, colour_map=request.colour_map))
                self._write(folder / f"{key}map.png", alone)
        if self._draws() and sum(map(len, self.cells)) < MOST_CELLS:
            if cell is None and picture is not None:
                where = f"{found.method} {layer_name(found.layer)}".strip()
                called = found.target.name or f"class {found.target.index}"
                lines = [name, f"{called} {share_text(found.target)} · {where}", *findings_line(found)]
                cell = cell_of(
                    picture,
                    found,
                    lines,
                    colour_map=request.colour_map,
                    opacity=request.opacity,
                    blend=request.blend,
                )
            if not beside or not self.cells:
                self.cells.append([])
            if cell is not None:
                self.cells[-1].append(cell)
        # Arrays are in the files by now; of a thousand pictures they would be a gigabyte.
        nothing = np.zeros((0, 0), dtype=np.float32)
        self.kept.append((name, found if self.single else replace(found, heat=nothing, raw=nothing)))

    def fail(self, name: str, error: InspectorError, *, checkpoint: int | None = None, more: Row = ()) -> None:
        """Something that gave no map. name: of the picture, or of the checkpoint where its position is given."""
        of = Path((self.request.file, *self.request.series)[checkpoint or 0]).name
        self.problems.append(f"{name}: {error}")
        picture = name if checkpoint is None else Path(self.request.pictures[0]).name
        self.rows.append((*row_of_error(error.says, checkpoint=of, picture=picture), *more))

    def write_trust(self, measured: Trust | TrustOfPictures) -> None:
        """What was measured, as a table and in the folder as JSON too."""
        from inspector.cam.trust.assess import Trust
        from inspector.render.json import as_json
        from inspector.render.trust_files import trust_csv
        from inspector.render.trust_pictures import trust_of_pictures_csv

        written = trust_csv(measured) if isinstance(measured, Trust) else trust_of_pictures_csv(measured)
        if self.places.trust is not None:
            self._write(self.places.trust, written.encode())
        if self.places.folder is not None:
            self._write(self.places.folder / "trust.csv", written.encode())
            self._write(self.places.folder / "trust.json", (as_json(measured) + "\n").encode())

    def finish(self, checkpoints: Sequence[Source], pictures: Sequence[Source]) -> None:
        """Write what needs all maps."""
        if not self.single and self.cells:
            drawn = png_bytes(sheet(self.cells))
            if sum(map(len, self.cells)) < len(self.entries):
                self.problems.append(f"The sheet shows the first {MOST_CELLS:,} of {len(self.entries):,} maps.")
            for path in (self.places.output, self.places.folder and self.places.folder / "sheet.png"):
                if path is not None:
                    self._write(path, drawn)
        for path in (self.places.table, self.places.folder and self.places.folder / "maps.csv"):
            if path is not None:
                self._write(path, table_csv(self.rows, self.columns).encode())
        if self.places.folder is not None and self.kept:
            from inspector.render.json import as_json

            manifest = manifest_of(
                settled(self.request, self.kept[0][1]) if self.single else self.request,
                self.entries,
                checkpoints=checkpoints,
                pictures=pictures,
                versions=self.kept[0][1].versions,
                files=tuple(self.written),
                folder=str(self.places.folder),
            )
            self._write(self.places.folder / "manifest.json", (as_json(manifest) + "\n").encode())

    def _draws(self) -> bool:
        return not self.single and (self.places.output is not None or self.places.folder is not None)

    def _write(self, path: Path, data: bytes) -> None:
        check_place(path, self._inputs)
        with written_whole(path) as temporary:
            temporary.write_bytes(data)
        self.written.append(path.name)


def add_maps(files: Files, maps: PictureMaps) -> None:
    """What became of one picture into the files."""
    request, number = files.request, maps.number
    name = Path(request.pictures[number]).name
    if maps.picture is None:
        assert maps.error is not None
        files.fail(name, maps.error)
        return
    rows = [[cell for cell in row if cell is not None] for rows in maps.cells for row in rows]
    if len(request.pictures) > 1:
        # A row of the sheet for each picture; of one alone, a row for each layer.
        rows = [[cell for row in rows for cell in row]]
    for row in rows:
        for place, explanation in enumerate(row):
            files.add(maps.picture, name, explanation, number=number, beside=place > 0)
    for method, layer, says in maps.refused:
        files.problems.append(f"{name}: {method} at {layer}: {says}" if layer else f"{name}: {method}: {says}")


def _parsed(text: str) -> object:
    for parse in (json.loads, ast.literal_eval):
        try:
            found: object = parse(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return found
    return None
