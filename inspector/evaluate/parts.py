"""Evaluations whose pictures were scored in parts, apart: what a store keeps of a run, and the report from it alone.

Of a run the store keeps its plan (every picture, and which folder is which output), and for each part a note: that it
came to its end, the keys of its scores, and the scores that no store keeps.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from inspector.cam.runs import ReadyModel
from inspector.cam.sweeping.held import content_of
from inspector.cam.sweeping.run import Running
from inspector.errors import ReadError
from inspector.evaluate.labels import ClassFolders, Listing
from inspector.evaluate.mapping import ClassMap
from inspector.evaluate.pieces import QUESTION, packed, unpacked
from inspector.evaluate.report import Evaluated, Evaluation
from inspector.evaluate.run import evaluated, mapped
from inspector.evaluate.scores import PictureScores, ScoredPiece, assembled, score_pictures, scores_nbytes
from inspector.evaluate.summarise import summarise
from inspector.progress import Progress, silent
from inspector.reports_from_json import KEPT, report_from
from inspector.sweep.piece import key_of
from inspector.sweep.store import ResultStore

_FOLDER = "evaluations"
_RUN_DIGITS = 12
_NAMED = 20
NO_PART = "No part of the run scored it."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Share:
    """What one part scored. positions: of its pictures in the listing; the other rows of the scores are NaN."""

    run: str
    scores: PictureScores
    mapping: ClassMap
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRun:
    """One run that stores know of. of: in how many parts. ended: those that came to their end, from 1."""

    id: str
    checkpoint: str
    data: str
    of: int
    ended: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """listing: without its digest, which says when files were written: copies on other machines are the same."""

    listing: Listing
    mapping: ClassMap


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """plan: its name. digest: of the listing. piece: pictures in each. keys: (number, key) of pieces with scores in a
    store. unkept: (number, scores) of the others."""

    run: str
    part: int
    of: int
    plan: str
    checkpoint: Evaluated
    data: str
    digest: str
    piece: int
    keys: tuple[tuple[int, str], ...]
    unkept: tuple[tuple[int, str], ...]


def score_share(
    ready: ReadyModel, folders: ClassFolders, running: Running, store: ResultStore, *, progress: Progress = silent
) -> Share:
    """Score the part of `running` into the store, and note there what was done. Raises as `score_model`."""
    answer, mapping = mapped(ready, folders)
    listing, part = folders.listing, running.part
    keys: list[tuple[int, str]] = []
    unkept: list[tuple[int, str]] = []

    def noted() -> Iterator[ScoredPiece]:
        for one in score_pictures(ready, folders, answer, replace(running, store=store), progress=progress):
            if one.key:
                keys.append((one.number, one.key))
            else:
                unkept.append((one.number, packed(one.scored).decode("ascii")))
            yield one

    scores = assembled(noted(), len(listing.paths), len(mapping.names), running.piece)
    checkpoint = evaluated(ready)
    told = dataclasses.asdict(checkpoint)
    run = key_of("evaluation", told, content_of(ready), listing.name, mapping.indices, mapping.names, part.of)
    plan = _Plan(listing=replace(listing, digest=""), mapping=mapping)
    note = _Note(
        run=run[:_RUN_DIGITS],
        part=part.number,
        of=part.of,
        plan=store.put_named("plans", run[:_RUN_DIGITS], (_line(dataclasses.asdict(plan)),)),
        checkpoint=checkpoint,
        data=listing.name,
        digest=listing.digest,
        piece=running.piece,
        keys=tuple(sorted(keys)),
        unkept=tuple(sorted(unkept)),
    )
    store.blobs.write(f"{_FOLDER}/{note.run}-{part.number}of{part.of}.json", _line(dataclasses.asdict(note)))
    numbers = {number for number, _ in (*keys, *unkept)}
    positions = (n for n in range(len(listing.paths)) if n // note.piece in numbers)
    return Share(run=note.run, scores=scores, mapping=mapping, positions=tuple(positions))


def evaluation_runs(stores: Sequence[ResultStore]) -> tuple[EvaluationRun, ...]:
    """The runs that the stores know of, by their ids. Raises ReadError."""
    notes: dict[str, list[_Note]] = {}
    for note in _notes(stores):
        notes.setdefault(note.run, []).append(note)
    return tuple(
        EvaluationRun(
            id=run,
            checkpoint=found[0].checkpoint.name,
            data=found[0].data,
            of=found[0].of,
            ended=tuple(sorted({note.part for note in found})),
        )
        for run, found in sorted(notes.items())
    )


def merge_scores(stores: Sequence[ResultStore], run: str) -> tuple[Evaluation, PictureScores]:
    """The evaluation of a whole run from what its parts left; neither the model nor a picture is read.

    run: its id. Pictures that no part scored are not counted, and said. Raises ReadError where the parts did not see
    the same pictures, or their plan is gone.
    """
    notes = [note for note in _notes(stores) if note.run == run]
    first = _agreed(notes)
    plan = _plan_of(stores, first)
    paths, outputs = plan.listing.paths, len(plan.mapping.names)
    scores_nbytes(len(paths), outputs)
    there: set[int] = set()

    def held() -> Iterator[ScoredPiece]:
        for one in _pieces(stores, notes, len(paths), outputs):
            there.add(one.number)
            yield one

    found = assembled(held(), len(paths), outputs, first.piece)
    unread = [*found.unread, *((n, NO_PART) for n in range(len(paths)) if n // first.piece not in there)]
    scores = PictureScores(values=found.values, unread=tuple(sorted(unread)))
    listing = replace(plan.listing, digest=first.digest)
    report = summarise(scores.values, scores.unread, listing, plan.mapping, first.checkpoint)
    absent = [str(number) for number in range(1, first.of + 1) if number not in {note.part for note in notes}]
    if absent:
        more = f" and {len(absent) - _NAMED:,} more" if len(absent) > _NAMED else ""
        says = f"Of {first.of} parts these did not come to their end: {', '.join(absent[:_NAMED])}{more}."
        report = replace(report, notes=(*report.notes, says))
    return report, scores


def _notes(stores: Sequence[ResultStore]) -> Iterator[_Note]:
    for store in stores:
        for name, data in store.blobs.read_each(store.blobs.names(_FOLDER)):
            try:
                yield report_from(_Note, json.loads(data), KEPT)
            except (ValueError, TypeError):
                store.damaged.append(name)


def _agreed(notes: Sequence[_Note]) -> _Note:
    """The first of notes that speak of the same pictures. Raises ReadError."""
    first = min(notes, key=lambda note: note.part)
    differing = sorted({note.part for note in notes if (note.plan, note.piece) != (first.plan, first.piece)})
    if differing:
        parts = ", ".join(map(str, differing[:_NAMED]))
        raise ReadError(
            f"The parts of run {first.run} did not see the same pictures: part {first.part} saw others than {parts}.",
            hint="Run all of them again.",
        )
    if first.piece < 1:
        raise ReadError(f"The notes of run {first.run} are damaged.", hint="Run all parts of it again.")
    return first


def _plan_of(stores: Sequence[ResultStore], note: _Note) -> _Plan:
    for store in stores:
        for place, text in store.texts("plans", note.run):
            if place == note.plan:
                return report_from(_Plan, json.loads(text), KEPT)
    raise ReadError(f"The plan of run {note.run} is not in the store.", hint="Run a part of it again.")


def _pieces(
    stores: Sequence[ResultStore], notes: Sequence[_Note], pictures: int, outputs: int
) -> Iterator[ScoredPiece]:
    """What the stores hold of the run, each piece once; what is none is left out."""
    each = notes[0].piece
    # Pieces of the same pictures have one key.
    numbers: dict[str, set[int]] = {}
    for note in notes:
        for number, key in note.keys:
            numbers.setdefault(key, set()).add(number)
    given: set[int] = set()

    def piece(number: int, data: bytes) -> Iterator[ScoredPiece]:
        found = unpacked(data, min(each, pictures - number * each), outputs) if number * each < pictures else None
        if number not in given and found is not None:
            given.add(number)
            yield ScoredPiece(number=number, key="", scored=found)

    for store in stores:
        for key, data in store.load(QUESTION, numbers):
            for number in sorted(numbers[key]):
                yield from piece(number, data)
    for note in notes:
        for number, text in note.unkept:
            yield from piece(number, text.encode("ascii", "replace"))


def _line(told: object) -> bytes:
    return json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode("ascii")
