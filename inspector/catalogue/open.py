"""A catalogue opened for questions: nothing that is asked can read another file, reach a network, or write."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.catalogue.engine import Connection, PartUnreadable, as_pattern, connect, explained, first_line, quoted
from inspector.catalogue.parts import PartFolder, Parts
from inspector.catalogue.views import make_kin, make_views
from inspector.errors import LimitExceeded, ReadError, UsageError

_FETCHED = 1_000
# Behind FROM, beside the tables: they make rows of their arguments, or say what there is to ask.
_FUNCTIONS = frozenset(
    {
        *("range", "generate_series", "unnest", "repeat", "json_each", "json_tree", "histogram", "histogram_values"),
        *("duckdb_tables", "duckdb_views", "duckdb_columns", "duckdb_functions", "pragma_table_info"),
    }
)
_MOST_SPILLED = "20GB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a question gives. more: whether there are further rows that were not asked for."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False


class Catalogue:
    """parts: what it is made of. absent: files that a run lists and that have no result (yet)."""

    def __init__(self, connection: Connection, parts: Parts, absent: int) -> None:
        self._connection = connection
        self._has_kin = parts.index is not None
        self.parts = parts
        self.absent = absent

    def need_kin(self) -> None:
        """Work out what several files hold, where no index says it. Raises as `ask`."""
        if not self._has_kin:
            with _told(0):
                make_kin(self._connection)
            self._has_kin = True

    def ask(
        self, sql: str, *, parameters: Mapping[str, object] | None = None, most: int = 0, seconds: float = 0.0
    ) -> Answer:
        """The rows of one SELECT, the first `most` of them, 0 for all. seconds: that it may take, 0 for any.

        Raises UsageError for what is no SELECT and what DuckDB does not understand, LimitExceeded for time and memory,
        ReadError for a part that cannot be read.
        """
        columns, rows = self.stream(sql, parameters=parameters, seconds=seconds)
        found: list[tuple[Any, ...]] = []
        for row in rows:
            if most and len(found) == most:
                return Answer(columns=columns, rows=tuple(found), more=True)
            found.append(row)
        return Answer(columns=columns, rows=tuple(found))

    def stream(
        self, sql: str, *, parameters: Mapping[str, object] | None = None, seconds: float = 0.0
    ) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        """(columns, rows as they come) of one SELECT. Raises as `ask`, also while rows are taken."""
        import duckdb

        with _told(seconds):
            statements = self._connection.statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError("A question is one SELECT.", hint="As in: select path, nbytes from files limit 10.")
            self._check_functions(sql)
            with _within(self._connection, seconds):
                self._connection.execute(statements[0], dict(parameters or {}))
        return self._connection.columns(), self._rows(seconds)

    def _check_functions(self, sql: str) -> None:
        """What stands behind FROM may be a table of ours or one of few functions: DuckDB has others that take an
        address in memory, or leave a file. What reads files is shut off besides (`_close`). Raises UsageError."""
        (text,) = self._connection.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchone() or ("{}",)
        told = json.loads(text)
        if told.get("error", True):
            raise UsageError(f"A question is one plain SELECT. {first_line(told.get('error_message', ''))}".strip())
        other = sorted(set(_functions(told)) - _FUNCTIONS)
        if other:
            raise UsageError(
                f"A question may not call {other[0]}.",
                hint="It has files, tensors and findings behind FROM.",
            )

    def _rows(self, seconds: float) -> Iterator[tuple[Any, ...]]:
        while True:
            with _told(seconds), _within(self._connection, seconds):
                rows = self._connection.fetchmany(_FETCHED)
            if not rows:
                return
            yield from rows


@contextmanager
def open_catalogue(folder: PartFolder, *, threads: int = 0, memory: str = "") -> Iterator[Catalogue]:
    """The catalogue of a folder, closed at the end. memory: that questions may take, as "1GB".

    Raises MissingLibrary without DuckDB, ReadError where there is none or it is of a later version. Damaged parts are
    left out: the others answer, and `parts.damaged` names them.
    """
    spilled = Path(tempfile.mkdtemp(prefix="inspector-"))
    connection: Connection | None = None
    try:
        connection, parts, absent = _opened(folder, spilled, threads, memory)
        yield Catalogue(connection, parts, absent)
    finally:
        if connection is not None:
            connection.close()
        shutil.rmtree(spilled, ignore_errors=True)


def _opened(folder: PartFolder, spilled: Path, threads: int, memory: str) -> tuple[Connection, Parts, int]:
    """The second time every byte is looked at: a part may have its length and not its bytes; or another driver has just
    taken its place."""
    for whole in (False, True):
        connection = connect(threads=threads, memory=memory)
        try:
            with explained(f"Reading the catalogue {folder.shown}"):
                parts = folder.parts(whole=whole)
                # An audit that found no file leaves its run alone.
                if not parts.rows and (not parts.runs or parts.damaged or parts.older):
                    raise _nothing(folder, parts)
                absent = make_views(connection, folder, parts).absent
                _close(connection, folder, parts, spilled)
        except BaseException as error:
            connection.close()
            if whole or not isinstance(error, PartUnreadable):
                raise
        else:
            return connection, parts, absent
    raise AssertionError("unreachable")


def _close(connection: Connection, folder: PartFolder, parts: Parts, spilled: Path) -> None:
    """From here on the parts are all that can be read, and nothing of this can be undone."""
    used = (*parts.rows, *parts.runs, *((parts.index,) if parts.index is not None else ()))
    places = [folder.place(file) for part in used for file in part.files]
    read = dict.fromkeys(text for place in places for text in (str(place), as_pattern(place)))
    for setting in (
        f"temp_directory = {quoted(str(spilled))}",
        f"max_temp_directory_size = '{_MOST_SPILLED}'",
        f"allowed_paths = [{', '.join(quoted(path) for path in read)}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def _functions(node: object) -> Iterator[str]:
    """Names of the table functions in a parsed statement, however deep."""
    left = [node]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            if one.get("type") == "TABLE_FUNCTION":
                yield str(one["function"]["function_name"]).lower()
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)


def _nothing(folder: PartFolder, parts: Parts) -> ReadError:
    if parts.damaged:
        return ReadError(
            f"Every part of the catalogue {folder.shown} is damaged, first {parts.damaged[0]}.",
            hint="Run the audit again: it is written anew from the store.",
        )
    if parts.older:
        return ReadError(
            f"The catalogue {folder.shown} is of an earlier version.",
            hint="Run the audit again: it is written anew from the store.",
        )
    return ReadError(f"There is no catalogue in {folder.shown}.", hint="Make one: inspector audit SOURCE --store DIR.")


@contextmanager
def _told(seconds: float) -> Iterator[None]:
    """What DuckDB says, as our sentences."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException as error:
        raise LimitExceeded(f"The question took longer than {seconds:g} s and was stopped.") from error
    except duckdb.OutOfMemoryException as error:
        raise LimitExceeded("The question needs more memory than it may take.") from error
    except duckdb.IOException as error:
        raise ReadError(f"A part of the catalogue cannot be read: {first_line(error)}") from error
    except duckdb.Error as error:
        raise UsageError(f"The question does not work: {first_line(error)}") from error


@contextmanager
def _within(connection: Connection, seconds: float) -> Iterator[None]:
    """Stop what the connection does after so long."""
    if not seconds:
        yield
        return
    timer = threading.Timer(seconds, _stopper(connection))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _stopper(connection: Connection) -> Callable[[], None]:
    def stop() -> None:
        with suppress(Exception):
            connection.interrupt()

    return stop
