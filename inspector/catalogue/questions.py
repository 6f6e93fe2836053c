"""Questions with a name, in SQL over the tables; the last one is put together here from pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from inspector.catalogue.open import Answer, Catalogue
from inspector.catalogue.schema import TABLES

#: What is shared by more files than this is no evidence of kinship by pairs: each is held against the first alone.
MOST_OWNERS = 64
#: Of the smaller file's tensors, how many the other one has to hold for a trunk in common.
LEAST_SHARE = 0.5
_MOST_PAIRS = 2_000_000

#: Of a row of files, joined with `held`, how many of its tensors match. Eight digits tell one sha256 from the others.
MATCHES_TEXT = """(held.matches > 0 OR contains(lower(path), lower($text))
    OR contains(lower(architecture), lower($text)) OR contains(lower(format), lower($text))
    OR contains(lower(producer), lower($text))
    OR (starts_with(sha256, lower($text)) AND regexp_full_match(lower($text), '[0-9a-f]{8,64}')))"""
_SEARCH = f"""
SELECT path, nbytes, coalesce(architecture, '') AS architecture, format, parameters, severity,
    coalesce(held.matches, 0) AS matching_tensors
FROM files LEFT JOIN (
    SELECT file, count(*) AS matches FROM tensors WHERE contains(lower(name), lower($text)) GROUP BY file
) AS held USING (file)
WHERE {MATCHES_TEXT} ORDER BY path
"""
_FINDINGS = """
SELECT path, findings.finding AS finding, findings.severity AS severity, findings.says AS says
FROM findings JOIN files USING (file) WHERE findings.finding = $code OR starts_with(findings.finding, $code)
ORDER BY list_position(['error', 'warning', 'notice', 'info'], findings.severity), path
"""
_SAME_FILES = """
WITH known AS (
    SELECT 'same bytes' AS how, sha256 AS digest, path, nbytes FROM files WHERE sha256 IS NOT NULL
    UNION ALL SELECT 'same weights', weights, path, nbytes FROM files WHERE weights IS NOT NULL
), grouped AS (
    SELECT how, digest, count(*) AS files, max(nbytes) AS nbytes, sum(nbytes) - max(nbytes) AS spare_nbytes,
        list(path ORDER BY path) AS paths
    FROM known GROUP BY how, digest HAVING count(*) > 1
)
SELECT how, files, nbytes, spare_nbytes::BIGINT AS spare_nbytes, paths[1:20] AS paths FROM grouped
WHERE how = 'same bytes' OR paths NOT IN (SELECT paths FROM grouped WHERE how = 'same bytes')
ORDER BY grouped.spare_nbytes DESC, how, paths[1]
"""
_SAME_TENSORS = """
SELECT files, name, dtype, shape, shared.nbytes AS nbytes, (shared.nbytes * (files - 1))::BIGINT AS spare_nbytes,
    path AS in_file, digest
FROM shared_tensors AS shared JOIN files AS held USING (file) ORDER BY spare_nbytes DESC, digest
"""
_PAIRS = f"""
WITH spread AS (
    SELECT owners, tensors, nbytes, unnest(owners) AS b, generate_subscripts(owners, 1) AS place FROM shared_groups
), pairs AS (
    SELECT unnest(CASE WHEN len(owners) > {MOST_OWNERS} THEN owners[1:1] ELSE owners[1:place - 1] END) AS a, b,
        tensors, nbytes FROM spread WHERE place > 1
), counted AS (
    SELECT a, b, sum(tensors)::BIGINT AS shared, sum(nbytes)::BIGINT AS nbytes FROM pairs GROUP BY a, b
)
SELECT a, b, shared, nbytes, one.tensors AS of_a, two.tensors AS of_b FROM counted
JOIN shared_sizes AS one ON one.file = a JOIN shared_sizes AS two ON two.file = b
WHERE shared >= 2 AND shared >= {LEAST_SHARE} * least(of_a, of_b) ORDER BY shared DESC, a, b LIMIT {_MOST_PAIRS}
"""
_MORE = {
    "place": "where it is: an absolute path, or an address",
    "run": "which audit looked at it",
    "audited": "when that ended",
}


class Duplicates(StrEnum):
    """What may be there twice."""

    FILES = "files"
    TENSORS = "tensors"


def tables(catalogue: Catalogue) -> Answer:
    """What there is to ask about: tables, their columns, and how many rows each has."""
    rows: list[tuple[Any, ...]] = []
    for name in ("files", "tensors", "findings"):
        ((count,),) = catalogue.ask(f"SELECT count(*) FROM {name}").rows
        says = {column.name: column.says for column in TABLES[name]} | _MORE
        rows += [
            (name, count, column, kind, says.get(column, ""))
            for column, kind, *_ in catalogue.ask(f"DESCRIBE {name}").rows
        ]
    return Answer(columns=("table", "rows", "column", "type", "says"), rows=tuple(rows))


def search(catalogue: Catalogue, text: str, *, most: int = 0, seconds: float = 0.0) -> Answer:
    """Files with the text in their path, network, format, writer or names of tensors, or whose sha256 begins so."""
    return catalogue.ask(_SEARCH, parameters={"text": text}, most=most, seconds=seconds)


def with_finding(catalogue: Catalogue, code: str, *, most: int = 0, seconds: float = 0.0) -> Answer:
    """Every finding of that id, or whose id begins so, the worst first."""
    return catalogue.ask(_FINDINGS, parameters={"code": code}, most=most, seconds=seconds)


def duplicates(catalogue: Catalogue, of: Duplicates, *, most: int = 0, seconds: float = 0.0) -> Answer:
    """What lies there more than once, most bytes to spare first.

    FILES: of the same sha256, or whose weights have the same names and digests, whatever format they lie in. TENSORS:
    of the same digest in more than one file, constants left out.
    """
    sql = _SAME_FILES if of is Duplicates.FILES else _SAME_TENSORS
    if of is Duplicates.TENSORS:
        catalogue.need_kin()
    return catalogue.ask(sql, most=most, seconds=seconds)


def trunks(catalogue: Catalogue, *, places: bool = False, most: int = 0, seconds: float = 0.0) -> Answer:
    """Files that share most of their weights, bit for bit: each beside the one of its group that shares most.

    A pair counts where at least half the tensors of the smaller are in both; constants are left out. Groups with most
    files first, each file but the group's first once. places: with where both files are.
    """
    catalogue.need_kin()
    pairs = catalogue.ask(_PAIRS, seconds=seconds).rows
    groups = _groups(pairs)
    named = catalogue.ask("SELECT file, path, place FROM files", seconds=seconds).rows if groups else ()
    names = {file: (path, place) for file, path, place in named}
    columns: tuple[str, ...] = ("trunk", "path", "shares_with", "shared_tensors", "of_tensors", "shared_nbytes")
    columns += ("place", "with_place") if places else ()
    rows: list[tuple[Any, ...]] = []
    for number, group in enumerate(groups, 1):
        for a, b, shared, nbytes, of_b in group:
            (path, place), (other, other_place) = names[b], names[a]
            where = (place, other_place) if places else ()
            rows.append((number, path, other, shared, of_b, nbytes, *where))
    more = bool(most) and len(rows) > most
    return Answer(columns=columns, rows=tuple(rows[:most] if most else rows), more=more)


def _groups(pairs: Sequence[tuple[Any, ...]]) -> list[list[tuple[int, int, int, int, int]]]:
    """(the one it shares most with, file, shared tensors, their bytes, tensors of the file) of each file of a group but
    its first, which is in most pairs; groups with most files first."""
    above: dict[int, int] = {}

    def root(file: int) -> int:
        while above.setdefault(file, file) != file:
            above[file] = above[above[file]]
            file = above[file]
        return file

    beside: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    sizes: dict[int, int] = {}
    for a, b, shared, nbytes, of_a, of_b in pairs:
        above[root(b)] = root(a)
        beside[a][b] = beside[b][a] = (shared, nbytes)
        sizes[a], sizes[b] = of_a, of_b
    members: dict[int, list[int]] = defaultdict(list)
    for file in beside:
        members[root(file)].append(file)
    found = []
    for group in members.values():
        first = max(group, key=lambda file: (len(beside[file]), sum(s for s, _ in beside[file].values()), -file))
        rows = []
        for file in group:
            if file == first:
                continue
            # The group's first where it shares with it at all, as with the same base that all were trained from.
            other = first if first in beside[file] else max(beside[file], key=lambda one: (beside[file][one][0], -one))
            rows.append((other, file, *beside[file][other], sizes[file]))
        found.append(sorted(rows, key=lambda row: (-row[2], row[1])))
    return sorted(found, key=lambda rows: (-len(rows), -rows[0][2], rows[0][1]))
