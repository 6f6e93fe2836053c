"""DuckDB, where it is installed: the one engine that writes and reads the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.errors import InspectorError, MissingLibrary, ReadError
from inspector.installed import install_line, is_installed

if TYPE_CHECKING:
    import duckdb

#: What a table without a home directory, extensions of strangers, or Python's own variables may be read from: nothing.
_CLOSED = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}


def is_there() -> bool:
    """Whether DuckDB is installed; nothing is imported."""
    return is_installed("duckdb")


def missing() -> MissingLibrary:
    """What is said where it is not."""
    return MissingLibrary("A catalogue needs duckdb, which is not installed.", hint=install_line("duckdb"))


def connect(*, threads: int = 0, memory: str = "") -> duckdb.DuckDBPyConnection:
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
    return duckdb.connect(":memory:", config=config)


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


def write_parquet(connection: duckdb.DuckDBPyConnection, query: str, place: Path) -> int:
    """The rows of a query as one file; how many. Row groups as large as a remote reader wants them."""
    written = connection.execute(
        f"COPY ({query}) TO {quoted(str(place))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 300000)"
    ).fetchone()
    return int(written[0]) if written else 0
