"""A heat map of each of many pictures by a sweep: the same maps whatever runs the pieces, kept small on the way."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from PIL import Image

from inspector.cam.describe import Setting, versions
from inspector.cam.explain import BATCH, explain_many
from inspector.cam.inputs.picture import MOST_NBYTES, input_shape
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import Explanation
from inspector.cam.runs import ReadyModel
from inspector.cam.spec import MapRequest
from inspector.cam.sweeping.held import Held, ModelPlace, Pictures, ReadPictures, answer_digest, ending
from inspector.cam.sweeping.run import PieceResult, Question, Running, run_pictures
from inspector.cam.sweeping.stored_maps import MapsOfPiece, StoredMap, drawn, packed_maps, stored, unpacked_maps
from inspector.errors import InspectorError, UsageError
from inspector.progress import Progress, silent
from inspector.side_files import read_bytes
from inspector.sweep.piece import Outcome

#: What the results are called in a store.
QUESTION = "maps"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureMap:
    """What became of one picture. number: its position in what was given. Either made or error is there."""

    number: int
    made: Explanation | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class LoosePictures:
    """Pictures by their paths, anywhere: the place and what reads it in one."""

    def open(self) -> LoosePictures:
        return self

    def read(self, path: str) -> bytes:
        """Raises ReadError."""
        return read_bytes(path, most_nbytes=MOST_NBYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """The work."""

    model: ModelPlace
    request: MapRequest
    setting: Setting
    target: int | None

    def __call__(self, item: Pictures) -> Outcome:
        maps: list[StoredMap] = []
        try:
            held = self.model.held()
            pictures = ReadPictures(item, held)
            for rows, some in self._groups(pictures):
                maps += self._made(held, rows, some, pictures)
        except InspectorError as error:
            return ending(error)
        piece = MapsOfPiece(maps=tuple(sorted(maps, key=lambda one: one.row)), unread=tuple(sorted(pictures.unread)))
        return Outcome(data=packed_maps(piece), kept=pictures.lasting)

    def _groups(self, pictures: ReadPictures) -> Iterator[tuple[list[int], list[Image.Image]]]:
        """Neighbours by position; one that cannot be prepared must not end the others."""
        rows: list[int] = []
        waiting: list[Image.Image] = []
        for row, picture in pictures:
            try:
                prepare(picture, self.setting.preprocessing)
            except InspectorError as error:
                pictures.refuse(row, error.says)
                continue
            if rows and row // BATCH != rows[0] // BATCH:
                yield rows, waiting
                rows, waiting = [], []
            rows.append(row)
            waiting.append(picture)
        if rows:
            yield rows, waiting

    def _made(self, held: Held, rows: list[int], some: list[Image.Image], pictures: ReadPictures) -> list[StoredMap]:
        try:
            return [stored(one, row) for row, one in zip(rows, self._explained(held, some), strict=True)]
        except InspectorError as error:
            if len(rows) == 1:
                pictures.refuse(rows[0], error.says)
                return []
        # One of them has no map: it is found alone, and the others are made beside each other again.
        left = [(row, one) for row, one in zip(rows, some, strict=True) if self._has_map(held, row, one, pictures)]
        if not left or len(left) == len(rows):
            for row, _ in left:
                pictures.refuse(row, "There is no map of it beside its neighbours.")
            return []
        return self._made(held, [row for row, _ in left], [one for _, one in left], pictures)

    def _has_map(self, held: Held, row: int, picture: Image.Image, pictures: ReadPictures) -> bool:
        try:
            list(self._explained(held, [picture]))
        except InspectorError as error:
            pictures.refuse(row, error.says)
            return False
        return True

    def _explained(self, held: Held, some: list[Image.Image]) -> Iterator[Explanation]:
        return explain_many(held.model, some, self.request, self.setting, targets=self.target)


def map_pictures(
    ready: ReadyModel,
    pictures: Sequence[Path],
    request: MapRequest,
    setting: Setting,
    running: Running,
    *,
    target: int | None = None,
    progress: Progress = silent,
) -> Iterator[PictureMap]:
    """What became of each picture of the part, in their order.

    request: of one map; fusions have no raw one. target: class index, None for each one's best. Raises UsageError for
    a fusion, NoSuchLayer and its kind before anything is made, and as `run_pictures`.
    """
    if request.options.fusion:
        raise UsageError("A fused map has no raw one that could be kept.", hint="Ask for one layer.")
    paths = [str(path.absolute()) for path in pictures]
    settled = _settled(ready, request, setting)
    asked = Question(
        name=QUESTION,
        facts=(
            ready.architecture,
            answer_digest(ready.model, setting.preprocessing),
            dataclasses.asdict(request),
            # Names of classes stand in the maps.
            hashlib.sha256("\0".join(setting.categories).encode("utf-8", "surrogatepass")).hexdigest(),
            dataclasses.asdict(setting.preprocessing),
            [setting.top, repr(setting.question), setting.answer],
            target,
            versions(),
        ),
        work=partial(_mapping, settled, setting, target),
        nothing=_nothing,
    )
    files = LoosePictures()
    numbers = iter(running.numbers(len(paths)))
    turn = next(numbers, None)
    # Those that came before their turn, small as they are; drawn, they would be a hundred times as large.
    early: dict[int, PieceResult] = {}
    for result in run_pictures(ready, paths, (files, files), asked, running, progress=progress):
        early[result.number] = result
        while turn in early:
            yield from _maps_of(early.pop(turn), turn * running.piece, request, setting)
            turn = next(numbers, None)


def _maps_of(result: PieceResult, start: int, request: MapRequest, setting: Setting) -> Iterator[PictureMap]:
    found = unpacked_maps(result.data, len(result.pictures.paths))
    if found is None:
        # Of a store that somebody else wrote into.
        found = unpacked_maps(result.again(), len(result.pictures.paths))
        assert found is not None
    made = {one.row: one for one in found.maps}
    why = dict(found.unread)
    for row in range(len(result.pictures.paths)):
        if row in made:
            yield PictureMap(number=start + row, made=drawn(made[row], request, setting))
        else:
            yield PictureMap(number=start + row, error=why[row])


def _settled(ready: ReadyModel, request: MapRequest, setting: Setting) -> MapRequest:
    """The request with its layers found, where all pictures have one size as input: else each piece finds them."""
    steps = setting.preprocessing
    spec = request.at(ready.model, input_shape(steps))
    one_size = steps.crop is not None or isinstance(steps.resize, tuple)
    return replace(request, layers=spec.layers) if one_size and spec.layer_texts else request


def _mapping(request: MapRequest, setting: Setting, target: int | None, model: ModelPlace) -> Mapping:
    return Mapping(model=model, request=request, setting=setting, target=target)


def _nothing(item: Pictures, unread: tuple[tuple[int, str], ...]) -> bytes:
    return packed_maps(MapsOfPiece(maps=(), unread=unread))
