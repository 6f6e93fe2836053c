"""DuckDB, where it is installed: the one engine that writes and reads the tables."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from inspector.errors import InspectorError, MissingLibrary, ReadError
from inspector.installed import install_line, is_installed

if TYPE_CHECKING:
    import duckdb

_T = TypeVar("_T")

#: What a table without a home directory, extensions of strangers, or Python's own variables may be read from: nothing.
_CLOSED = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}


# How soon a signal is heeded, and DuckDB is told again.
_SECONDS = 0.1


def is_there() -> bool:
    """Whether DuckDB is installed; nothing is imported."""
    return is_installed("duckdb")


def missing() -> MissingLibrary:
    """What is said where it is not."""
    return MissingLibrary("A catalogue needs duckdb, which is not installed.", hint=install_line("duckdb"))


class Connection:
    """A connection of DuckDB's whose work a signal can end.

    Where DuckDB (2.0.1) itself finds that a handler of signals raised, it waits for ever, about 1 time in 6 with two
    threads; told to stop by another thread, never in 120. So the main thread, the one that handles signals, only waits.
    """

    def __init__(self, real: duckdb.DuckDBPyConnection) -> None:
        self._real = real

    def execute(
        self, query: str | duckdb.Statement, parameters: Sequence[object] | Mapping[str, object] | None = None
    ) -> Connection:
        self._apart(lambda: self._real.execute(query, parameters))
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._apart(self._real.fetchone)

    def fetchall(self) -> list[Any]:
        return self._apart(self._real.fetchall)

    def fetchmany(self, most: int) -> list[Any]:
        return self._apart(lambda: self._real.fetchmany(most))

    def columns(self) -> tuple[str, ...]:
        """Names of what was asked last."""
        return tuple(str(column[0]) for column in self._real.description or ())

    def statements(self, sql: str) -> list[duckdb.Statement]:
        return self._real.extract_statements(sql)

    def interrupt(self) -> None:
        """Stop what it does, from another thread."""
        self._real.interrupt()

    def close(self) -> None:
        self._real.close()

    def _apart(self, work: Callable[[], _T]) -> _T:
        if threading.current_thread() is not threading.main_thread():
            return work()
        done: Future[_T] = Future()
        begun, ended = threading.Event(), threading.Event()

        def run() -> None:
            begun.set()
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised again by who waits
                done.set_exception(error)
            ended.set()

        try:
            # The program's end waits for no daemon.
            threading.Thread(target=run, daemon=True).start()
            # Not without an end: Windows would heed no signal.
            while not ended.wait(_SECONDS):
                pass
        except BaseException:
            # It may have come while the thread was started.
            begun.wait(1)
            while begun.is_set() and not ended.wait(_SECONDS):
                self._real.interrupt()
            raise
        return done.result()


def connect(*, threads: int = 0, memory: str = "") -> Connection:
    """An empty database in memory. threads: 0 for all processors. memory: as "1GB"; "" for DuckDB's own share.

    Raises MissingLibrary without DuckDB.
    """
    try:
        import duckdb
    except ImportError as error:
        raise missing() from error
    config: dict[str, Any] = dict(_CLOSED)
    if threads:
        config["threads"] = threads
    if memory:
        config["memory_limit"] = memory
    return Connection(duckdb.connect(":memory:", config=config))


class PartUnreadable(ReadError):
    """A file of a catalogue is not what it was written as, or is gone."""


@contextmanager
def explained(what: str) -> Iterator[None]:
    """What DuckDB says in the block, as a sentence. what: was done. Raises PartUnreadable."""
    import duckdb

    try:
        yield
    except InspectorError:
        raise
    except duckdb.Error as error:
        raise PartUnreadable(f"{what} failed: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """The sentence of an error of DuckDB's, without the lines that point into the query."""
    return str(error).strip().partition("\n")[0][:500]


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def reading(paths: Iterable[Path]) -> str:
    """A table function over Parquet files, at least one; signs in their names are names, not patterns or columns."""
    return f"read_parquet([{', '.join(quoted(as_pattern(path)) for path in paths)}], hive_partitioning = false)"


def as_pattern(path: Path) -> str:
    """A path as the pattern that only it fits: DuckDB takes every path for one."""
    return re.sub(r"[*?\[]", lambda sign: f"[{sign[0]}]", str(path))


def write_parquet(connection: Connection, query: str, place: Path) -> int:
    """The rows of a query as one file; how many. Row groups as large as a remote reader wants them."""
    written = connection.execute(
        f"COPY ({query}) TO {quoted(str(place))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 300000)"
    ).fetchone()
    return int(written[0]) if written else 0
