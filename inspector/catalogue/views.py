"""The tables of a catalogue over its parts: every row once, and of each file the newest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.catalogue.engine import Connection, reading
from inspector.catalogue.parts import Part, PartFolder, Parts
from inspector.catalogue.schema import FILES, NO_PLACE, TABLES, empty

PART_TABLES = ("files", "tensors", "findings")
#: What several files hold: tensors, tensors by who holds them, and how many tensors each of these files has.
KIN_TABLES = ("shared_tensors", "shared_groups", "shared_sizes")
INDEX_TABLES = ("current", *KIN_TABLES)
_HIDDEN = ("key", "identity", "covers")
# A run that looked at the same sources later says which files are there. Of a file that several runs looked at, the one
# that ended last says which content it has; of the results for that content, one whose numbers were read says more.
_CHOSEN = """
CREATE TABLE chosen AS
WITH listed AS ({runs}), results AS (SELECT key, identity, numbers, weights FROM ({files}) WHERE path = unit),
latest AS (
    SELECT sources, place, is_folder FROM listed
    SEMI JOIN (SELECT sources, max(ended) AS ended FROM listed GROUP BY sources) AS last USING (sources, ended)
), found AS (
    SELECT listed.*, coalesce(identity, '') AS identity, coalesce(numbers, false) AS numbers,
        weights IS NOT NULL AS digested
    FROM listed SEMI JOIN latest USING (sources, place, is_folder) LEFT JOIN results USING (key)
    WHERE place <> '{no_place}'
), ranked AS (
    SELECT *, row_number() OVER one AS nth, first_value(identity) OVER one AS newest
    FROM found WINDOW one AS (PARTITION BY place, is_folder ORDER BY ended DESC, run)
), best AS (
    SELECT * FROM ranked WHERE nth = 1 OR (identity = newest AND identity <> '')
    QUALIFY row_number() OVER (PARTITION BY place, is_folder ORDER BY numbers DESC, digested DESC, nth) = 1
)
SELECT key, run, ended, place FROM best QUALIFY row_number() OVER (PARTITION BY key ORDER BY ended DESC, place) = 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """absent: files that a run lists and that have no result. plain: whether every row of every part counts, once."""

    absent: int
    plain: bool


def rows_query(folder: PartFolder, parts: Sequence[Part], table: str, *, repeated: bool) -> str:
    """All rows of a table, each once. repeated: as `mark_repeated` said."""
    if not parts:
        return empty(TABLES[table])
    if not repeated:
        return f"SELECT * FROM {reading(folder.place(part.file(table)) for part in parts)}"
    return " UNION ALL ".join(
        f"SELECT * FROM {reading([folder.place(part.file(table))])} "
        f"WHERE file NOT IN (SELECT file FROM repeated WHERE part = {number})"
        for number, part in enumerate(parts)
    )


def mark_repeated(connection: Connection, folder: PartFolder, parts: Sequence[Part]) -> bool:
    """Whether two parts hold the same file, as two drivers at once leave it. Makes a table of which parts do not count
    for it."""
    every = " UNION ALL ".join(
        f"SELECT file, {number} AS part FROM {reading([folder.place(part.file('files'))])}"
        for number, part in enumerate(parts)
    )
    every = every or "SELECT 0::UBIGINT AS file, 0 AS part"
    connection.execute(
        f"""CREATE OR REPLACE TABLE repeated AS SELECT file, part FROM ({every})
        QUALIFY row_number() OVER (PARTITION BY file ORDER BY part) > 1"""
    )
    return bool(count_of(connection, "repeated"))


def make_views(connection: Connection, folder: PartFolder, parts: Parts) -> Standing:
    """files, tensors and findings, of each file the newest, worked out from the parts or as their index has it."""
    if parts.index is not None and parts.index.plain:
        connection.execute(f"CREATE VIEW held_files AS SELECT * FROM {_indexed(folder, parts.index, 'current')}")
        for table in ("tensors", "findings"):
            connection.execute(f"CREATE VIEW {table} AS {rows_query(folder, parts.rows, table, repeated=False)}")
        standing = Standing(absent=parts.index.absent, plain=True)
    else:
        standing = _work_out(connection, folder, parts)
    shown = ", ".join(column.name for column in FILES if column.name not in _HIDDEN)
    connection.execute(f"CREATE VIEW files AS SELECT {shown}, place, run, audited FROM held_files")
    if parts.index is not None:
        for table in KIN_TABLES:
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {_indexed(folder, parts.index, table)}")
    return standing


def make_kin(connection: Connection) -> None:
    """The tables of what several files hold, where no index has them: one pass over all digests."""
    connection.execute(
        """CREATE TEMP TABLE owned AS
        SELECT digest, min(nbytes) AS nbytes, min(name) AS name, min(dtype) AS dtype, any_value(shape) AS shape,
            list(DISTINCT file) AS owners, bool_or(role = 'weights') AS is_weights
        FROM tensors WHERE digest IS NOT NULL AND NOT constant GROUP BY digest HAVING min(file) <> max(file)"""
    )
    connection.execute(
        """CREATE TABLE shared_tensors AS
        SELECT digest, len(owners) AS files, list_min(owners) AS file, name, dtype, shape, nbytes FROM owned"""
    )
    # Tensors of the same owners are one row, so that a hundred copies of a network are not a hundred times each tensor.
    connection.execute(
        """CREATE TABLE shared_groups AS
        SELECT list_sort(owners) AS owners, count(*) AS tensors, sum(nbytes)::BIGINT AS nbytes
        FROM owned WHERE is_weights GROUP BY list_sort(owners)"""
    )
    connection.execute(
        """CREATE TABLE shared_sizes AS
        SELECT file, count(DISTINCT digest) AS tensors FROM tensors
        SEMI JOIN (SELECT unnest(owners) AS file FROM shared_groups) USING (file)
        WHERE digest IS NOT NULL AND NOT constant AND role = 'weights' GROUP BY file"""
    )
    connection.execute("DROP TABLE owned")


def _work_out(connection: Connection, folder: PartFolder, parts: Parts) -> Standing:
    repeated = mark_repeated(connection, folder, parts.rows)
    rows = {table: rows_query(folder, parts.rows, table, repeated=repeated) for table in PART_TABLES}
    runs = rows_query(folder, parts.runs, "runs", repeated=False)
    connection.execute(_CHOSEN.format(runs=runs, files=rows["files"], no_place=NO_PLACE))
    connection.execute(
        f"""CREATE TABLE held_files AS SELECT held.*, chosen.place, chosen.run,
        to_timestamp(chosen.ended)::TIMESTAMP AS audited FROM ({rows["files"]}) AS held JOIN chosen USING (key)"""
    )
    old = count_of(connection, f"({rows['files']}) ANTI JOIN held_files USING (file)")
    for table in ("tensors", "findings"):
        only = " SEMI JOIN held_files USING (file)" if old else ""
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM ({rows[table]}){only}")
    absent = count_of(connection, "chosen ANTI JOIN held_files USING (key)")
    return Standing(absent=absent, plain=not old and not repeated)


def _indexed(folder: PartFolder, index: Part, table: str) -> str:
    return reading([folder.place(index.file(table))])


def count_of(connection: Connection, source: str) -> int:
    """How many rows it has."""
    (count,) = connection.execute(f"SELECT count(*) FROM {source}").fetchone() or (0,)
    return int(count)
