"""Brings the catalogue of a store up to date, from the store alone: nothing of the sources is read.

What was taken in before is not taken in again, so that the same audit twice leaves the same rows; two who do this at
once write parts of their own, and what both hold counts once.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from inspector.catalogue.engine import Connection, connect, explained, quoted, reading, write_parquet
from inspector.catalogue.parts import SCRATCH, Part, PartFolder, PartKind, Parts
from inspector.catalogue.schema import FILES, FINDINGS, LINE, NO_PLACE, OWN_ID, RUN_LINE, TENSORS, selected
from inspector.catalogue.views import (
    INDEX_TABLES,
    KIN_TABLES,
    PART_TABLES,
    make_kin,
    make_views,
    mark_repeated,
    rows_query,
)
from inspector.errors import ExportError
from inspector.lint.audit import PlannedRun, planned_runs
from inspector.path_text import path_text
from inspector.side_files import reason_of
from inspector.survey.described import DESCRIBED, tabled, unit_line
from inspector.survey.report import RowKind
from inspector.sweep.piece import KEY_DIGITS, key_of
from inspector.sweep.store import ResultStore

#: Small parts of rows from which on they are made one.
MOST_PARTS = 8
_SMALL_NBYTES = 256 << 20
# Of lines, as many as become one part.
_BATCH_NBYTES = 64 << 20
_LEAST_LINE = 1 << 24
_LATER_SECONDS = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """What an update did. taken: results of the store that were taken in. compacted: parts that were made one.
    damaged: files that were left out, and written anew where the store still has what they were made from."""

    taken: int = 0
    compacted: int = 0
    damaged: tuple[str, ...] = ()


def update(stores: Sequence[ResultStore], folder: PartFolder, *, most_parts: int = MOST_PARTS) -> Updated:
    """Take in what the stores have and the catalogue has not. Raises MissingLibrary without DuckDB, ReadError and
    ExportError of the stores and the folder; what the catalogue held stays whole."""
    connection = connect()
    try:
        before = folder.parts()
        with explained(f"Writing the catalogue {folder.shown}"), _scratch(folder) as scratch:
            work = _Update(connection, stores, folder, scratch)
            taken = work.take_in(before)
            work.take_runs(before)
            after = folder.parts()
            small = [part for part in after.rows if sum(file.nbytes for file in part.files) < _SMALL_NBYTES]
            compacted = len(small) if len(small) > most_parts else 0
            if compacted:
                work.compact(small)
                after = folder.parts()
            if after.index is None and after.rows:
                work.index(after)
                after = folder.parts()
        folder.sweep_up(after)
        return Updated(taken=taken, compacted=compacted, damaged=before.damaged)
    finally:
        connection.close()


@contextmanager
def _scratch(folder: PartFolder) -> Iterator[Path]:
    """A folder for lines on their way, beside the parts; removed at the end."""
    try:
        folder.root.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=folder.root))
    except OSError as error:
        raise ExportError(f"The catalogue {folder.shown} cannot be written: {reason_of(error)}.") from error
    try:
        yield place
    except OSError as error:
        raise ExportError(f"The catalogue {folder.shown} cannot be written: {reason_of(error)}.") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


class _Update:
    def __init__(
        self, connection: Connection, stores: Sequence[ResultStore], folder: PartFolder, scratch: Path
    ) -> None:
        self._connection = connection
        self._stores = stores
        self._folder = folder
        self._lines = scratch / "lines.ndjson"
        connection.execute(f"SET temp_directory = {quoted(str(scratch / 'spilled'))}")
        connection.execute("CREATE TABLE known (key VARCHAR)")

    def take_in(self, before: Parts) -> int:
        """The results that no part has yet; how many."""
        if before.rows:
            files = reading(self._folder.place(part.file("files")) for part in before.rows)
            self._connection.execute(f"INSERT INTO known SELECT DISTINCT key FROM {files}")
        taken, held = 0, 0
        texts: list[tuple[str, bytes]] = []
        every = (store.texts("results", DESCRIBED, known=before.covered) for store in self._stores)
        for name, text in chain.from_iterable(every):
            texts.append((name, text))
            held += len(text)
            if held >= _BATCH_NBYTES:
                taken += self._take([one for one, _ in texts], (text for _, text in texts))
                texts, held = [], 0
        return taken + (self._take([one for one, _ in texts], (text for _, text in texts)) if texts else 0)

    def take_runs(self, before: Parts) -> None:
        """The newest plan of each run, and what is said of files that have no result in the store."""
        known = {name for part in before.runs for name in part.covers}
        for run in planned_runs(self._stores, known):
            own = self._take_own(run, before.covered)
            covered = self._covered_by_folders(run, own)
            sources = key_of("sources", run.base, sorted(run.sources))
            # The newest plan is the one that counts, and clocks of drivers differ: it is later than what it follows.
            at = max([run.at, *(round(one.at + _LATER_SECONDS, 3) for one in before.runs if one.run == run.id)])
            told = {"run": run.id, "ended": at, "sources": sources}
            lines = (
                {
                    **told,
                    "path": tabled(unit.path),
                    "place": tabled(_place(run.base, unit.path)),
                    "is_folder": unit.is_folder,
                    "key": own.get((unit.path, unit.row is not None)) or unit.key,
                }
                for unit in run.units
                if unit.is_folder or unit.path not in covered
            )
            # A run that found nothing has to be known of: what an earlier one found there is gone.
            first = next(lines, {**told, "path": "", "place": NO_PLACE, "is_folder": False, "key": ""})
            every = chain((first,), lines)
            self._write_lines(json.dumps(line, ensure_ascii=True).encode("ascii") for line in every)
            self._folder.write(PartKind.RUN, ("runs",), (run.state,), self._write_run, run=run.id, at=at)

    def _write_run(self, _: str, place: Path) -> int:
        return write_parquet(self._connection, f"SELECT * FROM {self._read_lines(RUN_LINE)}", place)

    def compact(self, parts: Sequence[Part]) -> None:
        """Several parts as one; what two of them hold is in it once."""
        repeated = mark_repeated(self._connection, self._folder, parts)
        self._folder.write(
            PartKind.ROWS,
            PART_TABLES,
            (name for part in parts for name in part.covers),
            lambda table, place: write_parquet(
                self._connection, rows_query(self._folder, parts, table, repeated=repeated), place
            ),
        )

    def index(self, parts: Parts) -> None:
        """What follows from all parts together, so that a question need not work it out."""
        standing = make_views(self._connection, self._folder, parts)
        make_kin(self._connection)
        queries = {"current": "SELECT * FROM held_files ORDER BY path"}
        queries |= {table: f"SELECT * FROM {table}" for table in KIN_TABLES}
        self._folder.write(
            PartKind.INDEX,
            INDEX_TABLES,
            parts.ids,
            lambda table, place: write_parquet(self._connection, queries[table], place),
            absent=standing.absent,
            plain=standing.plain,
        )

    def _take_own(self, run: PlannedRun, covered: frozenset[str]) -> dict[tuple[str, bool], str]:
        """Rows that no store keeps, as results of their own: their keys, by (path, whether the plan has the row)."""
        found = [(unit.path, True, unit_line((unit.row,))) for unit in run.units if unit.row is not None]
        found += [(path, False, unit_line(given.rows, given.parts)) for path, given in run.unkept if given.rows]
        keyed = [(path, planned, key_of("own", path, line.decode("ascii")), line) for path, planned, line in found]
        name = f"own/{key_of('own', sorted(key for _, _, key, _ in keyed))}"
        if keyed and name not in covered:
            self._take([name], [b"\n".join(key.encode("ascii") + b"\t" + line for _, _, key, line in keyed)])
        return {(path, planned): key for path, planned, key, _ in keyed}

    def _covered_by_folders(self, run: PlannedRun, own: dict[tuple[str, bool], str]) -> frozenset[str]:
        """Files whose whole content is in the row of a folder."""
        units = [unit for unit in run.units if unit.is_folder and unit.row is None]
        folders = {own.get((unit.path, False)) or unit.key: unit.path for unit in units}
        rows = self._folder.parts().rows
        if not folders or not rows:
            return frozenset()
        files = reading(self._folder.place(part.file("files")) for part in rows)
        found = self._connection.execute(
            f"SELECT key, covers FROM {files} WHERE path = unit AND kind = ? AND len(covers) > 0",
            [RowKind.CHECKPOINT.value],
        ).fetchall()
        inside = {key: "" if path == "." else f"{path}/" for key, path in folders.items()}
        return frozenset(inside[key] + part for key, parts in found if key in inside for part in parts)

    def _take(self, covers: Sequence[str], texts: Iterable[bytes]) -> int:
        """Lines of results, key and unit of each, as a part; how many were not known."""
        self._write_lines(
            b'{"key":"%b","unit":%b}' % (line[:KEY_DIGITS], line[KEY_DIGITS + 1 :])
            for text in texts
            for line in text.split(b"\n")
            if line[KEY_DIGITS : KEY_DIGITS + 1] == b"\t" and line[:KEY_DIGITS].isalnum()
        )
        execute = self._connection.execute
        execute(
            f"""CREATE OR REPLACE TEMP TABLE units AS
            SELECT key, unit FROM {self._read_lines(LINE)} WHERE key NOT IN (SELECT key FROM known)
            QUALIFY row_number() OVER (PARTITION BY key) = 1"""
        )
        execute(
            """CREATE OR REPLACE TEMP TABLE rows_of_units AS
            SELECT key, unit.identity AS identity, unit.tag AS tag, unit.covers AS covers,
            unit."rows"[1].path AS first, generate_subscripts(unit."rows", 1) AS number, unnest(unit."rows") AS r
            FROM units"""
        )
        queries = {
            "files": f"SELECT {selected(FILES)} FROM rows_of_units",
            "tensors": f"""SELECT {selected(TENSORS)} FROM (SELECT {OWN_ID} AS file,
                unnest(r.held.name) AS name, unnest(r.held.role) AS role, unnest(r.held.dtype) AS dtype,
                unnest(r.held.shape) AS shape, unnest(r.held.nbytes) AS nbytes, unnest(r.held.digest) AS digest,
                unnest(r.held.constant) AS constant FROM rows_of_units)""",
            "findings": f"""SELECT {selected(FINDINGS)} FROM (
                SELECT {OWN_ID} AS file, unnest(r.findings) AS one FROM rows_of_units)""",
        }
        self._folder.write(
            PartKind.ROWS,
            PART_TABLES,
            covers,
            lambda table, place: write_parquet(self._connection, queries[table], place),
        )
        execute("INSERT INTO known SELECT key FROM units")
        (count,) = execute("SELECT count(*) FROM units").fetchone() or (0,)
        return int(count)

    def _write_lines(self, lines: Iterable[bytes]) -> None:
        self._longest = 0
        with self._lines.open("wb") as file:
            for line in lines:
                self._longest = max(self._longest, len(line))
                file.write(line + b"\n")

    def _read_lines(self, columns: dict[str, str]) -> str:
        told = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in columns.items())
        return (
            f"read_json({quoted(str(self._lines))}, format = 'newline_delimited', columns = {{{told}}}, "
            f"maximum_object_size = {max(_LEAST_LINE, 2 * self._longest)})"
        )


def _place(base: str, path: str) -> str:
    return path if "://" in path else os.path.normpath(os.path.join(path_text(base), path))  # noqa: PTH118 - an address of text
