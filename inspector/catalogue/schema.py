"""What the tables of a catalogue hold. Whatever changes a column's meaning raises the version: parts of another one are
written anew from the store."""

from __future__ import annotations

from dataclasses import dataclass

#: Of the columns below; in the note of each part.
VERSION = 2


@dataclass(frozen=True, slots=True)
class Column:
    """source: as an expression over a row r of a unit's line (see `survey/described.py`), or what unnests from it."""

    name: str
    type: str
    source: str
    says: str


#: Of a row, known again wherever it is read: the digest of its unit's key, and which row of the unit it is.
OWN_ID = "md5_number_lower(key || '/' || number)"
#: One row per file, folder that is one checkpoint, or member of an archive.
FILES = (
    Column("file", "UBIGINT", OWN_ID, "joins the tables"),
    Column("key", "VARCHAR", "key", "of the result in the store"),
    Column("identity", "VARCHAR", "identity", "by what the file is known again"),
    Column("unit", "VARCHAR", "first", "path of the file, of a member that of its archive"),
    Column("covers", "VARCHAR[]", "covers", "files whose whole content is in it"),
    Column("path", "VARCHAR", "r.path", "as the audit called it"),
    Column("kind", "VARCHAR", "r.kind", "checkpoint, unreadable or other"),
    Column("format", "VARCHAR", "r.format", "as the reader says it"),
    Column("producer", "VARCHAR", "r.producer", "who wrote it"),
    Column("nbytes", "BIGINT", "r.nbytes", "of the file"),
    Column("architecture", "VARCHAR", "r.architecture", "the best candidate"),
    Column("classes", "BIGINT", "r.classes", "its outputs"),
    Column("confidence", "DOUBLE", "r.confidence", "0 to 1: names and shapes that fit"),
    Column("exact", "BOOLEAN", "r.exact", "whether all of them do"),
    Column("tensors", "BIGINT", "r.tensors", "how many it holds"),
    Column("parameters", "BIGINT", "r.parameters", "elements of its likeliest weights"),
    Column("buffers", "BIGINT", "r.buffers", "elements beside them"),
    Column("dtypes", "MAP(VARCHAR, BIGINT)", "r.dtypes", "tensors of each type"),
    Column("severity", "VARCHAR", "r.severity", "of the worst finding"),
    Column("finding", "VARCHAR", "r.finding", "the worst one's id"),
    Column("says", "VARCHAR", "r.says", "the worst one's sentence"),
    Column("dangerous", "BIGINT", "r.dangerous", "names that can run code"),
    Column("unknown", "BIGINT", "r.unknown", "names that nobody knows"),
    Column("sha256", "VARCHAR", "r.sha256", "of the whole file, where it is known"),
    Column("tag", "VARCHAR", "tag", "what its bucket says of its content"),
    Column("weights", "VARCHAR", "r.weights_digest", "digest of all its weights, names and numbers"),
    Column("numbers", "BOOLEAN", "coalesce(r.numbers, false)", "whether they were read"),
)
#: One row per tensor of a checkpoint.
TENSORS = (
    Column("file", "UBIGINT", "file", "joins the tables"),
    Column("name", "VARCHAR", "name", "its key"),
    Column("role", "VARCHAR", "role", "weights, ema, optimizer, training or other"),
    Column("dtype", "VARCHAR", "dtype", "as the file declares it"),
    Column("shape", "BIGINT[]", "shape", "as the file declares it"),
    Column("nbytes", "BIGINT", "nbytes", "of its elements"),
    Column("digest", "VARCHAR", "digest", "of type, shape and all bytes, where they were read"),
    Column("constant", "BOOLEAN", "constant", "whether all its elements are one value"),
)
#: One row per finding.
FINDINGS = (
    Column("file", "UBIGINT", "file", "joins the tables"),
    Column("finding", "VARCHAR", "one.id", "its id"),
    Column("severity", "VARCHAR", "one.severity", "error, warning, notice or info"),
    Column("says", "VARCHAR", "one.says", "one sentence"),
    Column("subjects", "VARCHAR[]", "one.subjects", "what it is about, the first twenty"),
)
#: One row per unit of a run's plan: which of all results are the newest.
RUNS = (
    Column("run", "VARCHAR", "", "its id"),
    Column("ended", "DOUBLE", "", "when it did, in seconds since 1970"),
    Column("sources", "VARCHAR", "", "a digest of what it was asked to look at"),
    Column("path", "VARCHAR", "", "as the audit called it"),
    Column("place", "VARCHAR", "", "where it is: an absolute path, or an address"),
    Column("is_folder", "BOOLEAN", "", "whether it is several files that are one checkpoint"),
    Column("key", "VARCHAR", "", "of its result"),
)
#: Of the one row of a run that found no file.
NO_PLACE = ""
TABLES = {"files": FILES, "tensors": TENSORS, "findings": FINDINGS, "runs": RUNS}

_HELD = (
    "STRUCT(name VARCHAR[], role VARCHAR[], dtype VARCHAR[], shape BIGINT[][], nbytes BIGINT[], digest VARCHAR[], "
    "constant BOOLEAN[])"
)
_FINDING = "STRUCT(id VARCHAR, severity VARCHAR, says VARCHAR, subjects VARCHAR[])"
_ROW = (
    "STRUCT(path VARCHAR, nbytes BIGINT, kind VARCHAR, format VARCHAR, producer VARCHAR, tensors BIGINT, "
    "parameters BIGINT, buffers BIGINT, dangerous BIGINT, unknown BIGINT, severity VARCHAR, finding VARCHAR, "
    "says VARCHAR, sha256 VARCHAR, architecture VARCHAR, classes BIGINT, confidence DOUBLE, exact BOOLEAN, "
    "dtypes MAP(VARCHAR, BIGINT), weights_digest VARCHAR, numbers BOOLEAN, "
    f"findings {_FINDING}[], held {_HELD})"
)
#: A unit's line as DuckDB reads it.
LINE = {
    "key": "VARCHAR",
    "unit": f'STRUCT(identity VARCHAR, tag VARCHAR, covers VARCHAR[], "rows" {_ROW}[])',
}
RUN_LINE = {column.name: column.type for column in RUNS}


def selected(columns: tuple[Column, ...]) -> str:
    """The columns as a list for SELECT, each of its type."""
    return ", ".join(f"CAST({column.source} AS {column.type}) AS {column.name}" for column in columns)


def empty(columns: tuple[Column, ...]) -> str:
    """A query that gives no row and has these columns."""
    return "SELECT " + ", ".join(f"CAST(NULL AS {column.type}) AS {column.name}" for column in columns) + " WHERE false"
