"""What a catalogue answers, held against how the zoo was made; and that a question can do nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.catalogue import questions
from inspector.catalogue.open import Catalogue, open_catalogue
from inspector.catalogue.parts import PartFolder
from inspector.errors import LimitExceeded, ReadError, UsageError
from tests.catalogue.zoo import weights


@pytest.fixture
def catalogue(asked: PartFolder) -> Iterator[Catalogue]:
    with open_catalogue(asked) as catalogue:
        yield catalogue


def test_every_file_has_a_row_and_every_tensor(catalogue: Catalogue) -> None:
    rows = catalogue.ask("select path, tensors, format, severity, numbers from files order by path").rows
    assert rows == (
        ("zoo/base.pth", 6, "torch-zip", None, True),
        ("zoo/base.safetensors", 6, "safetensors", None, True),
        ("zoo/copy.safetensors", 6, "safetensors", None, True),
        ("zoo/evil.pkl", 0, "pickle", "error", False),
        ("zoo/stranger.safetensors", 7, "safetensors", None, True),
        ("zoo/tune1.safetensors", 6, "safetensors", None, True),
        ("zoo/tune2.safetensors", 6, "safetensors", None, True),
    )
    assert catalogue.ask("select count(*) from tensors").rows == ((37,),)
    assert catalogue.absent == 0 and catalogue.parts.damaged == ()


def test_digests_are_of_type_shape_and_all_bytes(catalogue: Catalogue) -> None:
    held = dict(
        catalogue.ask(
            "select name, digest from tensors join files using (file) where path = 'zoo/stranger.safetensors'"
        ).rows
    )
    for name, value in weights(9).items():
        told = b"float32 [4, 4] strided \n" + value.tobytes()
        assert held[name] == hashlib.blake2b(told, digest_size=16).hexdigest()
    constant = catalogue.ask("select name from tensors where constant").rows
    assert constant == (("norm.weight",),)
    sha256 = catalogue.ask(
        "select distinct sha256 from files where path in ('zoo/base.safetensors', 'zoo/copy.safetensors')"
    )
    assert len(sha256.rows) == 1 and len(sha256.rows[0][0]) == 64


def test_duplicates_by_bytes_and_by_weights(catalogue: Catalogue) -> None:
    rows = questions.duplicates(catalogue, questions.Duplicates.FILES).rows
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("same weights", 3, ["zoo/base.pth", "zoo/base.safetensors", "zoo/copy.safetensors"]),
        ("same bytes", 2, ["zoo/base.safetensors", "zoo/copy.safetensors"]),
    ]


def test_duplicate_tensors_and_how_many_bytes_they_cost(catalogue: Catalogue) -> None:
    rows = questions.duplicates(catalogue, questions.Duplicates.TENSORS).rows
    # Five layers in five files, the last one in three; a constant says nothing.
    assert sorted((row[1], row[0], row[4], row[5]) for row in rows) == [
        *((f"layers.{n}.q_proj.weight", 5, 64, 256) for n in range(5)),
        ("layers.5.q_proj.weight", 3, 64, 128),
    ]


def test_a_trunk_in_common_is_found_and_a_stranger_is_not(catalogue: Catalogue) -> None:
    answer = questions.trunks(catalogue)
    paths = {row[1]: row[3:5] for row in answer.rows} | {row[2]: None for row in answer.rows}
    assert {row[0] for row in answer.rows} == {1} and len(answer.rows) == 4
    assert paths.keys() == {f"zoo/{name}" for name in (
        "base.pth", "base.safetensors", "copy.safetensors", "tune1.safetensors", "tune2.safetensors"
    )}  # fmt: skip
    assert {paths[f"zoo/tune{n}.safetensors"] for n in (1, 2)} == {(5, 6)}


def test_the_search_looks_at_paths_names_and_digests(catalogue: Catalogue) -> None:
    def found(text: str) -> list[str]:
        return [row[0].removeprefix("zoo/") for row in questions.search(catalogue, text).rows]

    assert found("TUNE") == ["tune1.safetensors", "tune2.safetensors"]
    assert found("norm.w") == ["stranger.safetensors"]
    ((sha256,),) = catalogue.ask("select sha256 from files where path = 'zoo/evil.pkl'").rows
    for digits in (sha256.upper(), sha256[:8], sha256[:20]):
        assert found(digits) == ["evil.pkl"]
    for digits in (sha256[:7], sha256[1:9], f"{sha256[:8]}_", f"{sha256}0"):
        assert found(digits) == []
    for text in ("'", "t%e", "t_ne", "' or '1' = '1", "nothing\x00", "\\"):
        assert found(text) == []


def test_findings_by_id_and_by_its_beginning(catalogue: Catalogue) -> None:
    for code in ("dangerous-global", "dangerous"):
        rows = questions.with_finding(catalogue, code).rows
        assert [row[:3] for row in rows] == [("zoo/evil.pkl", "dangerous-global", "error")]
    assert questions.with_finding(catalogue, "no-such").rows == ()


def test_rows_are_limited_and_said_to_be(catalogue: Catalogue) -> None:
    answer = catalogue.ask("select path from files", most=3)
    assert len(answer.rows) == 3 and answer.more
    assert not catalogue.ask("select path from files", most=7).more


@pytest.mark.parametrize(
    "sql",
    [
        "copy files to '{out}'",
        "copy files to '{part}' (use_tmp_file false)",
        "explain analyze copy files to '{out}'",
        "create table t as select 1",
        "drop view files",
        "insert into held_files select * from held_files",
        "attach '{out}'",
        "export database '{out}'",
        "set enable_external_access = true",
        "pragma database_list",
        "install httpfs",
        "select 1; copy files to '{out}'",
        "prepare a as copy files to '{out}'",
        "",
    ],
)
def test_what_is_no_select_is_refused(catalogue: Catalogue, asked: PartFolder, tmp_path: Path, sql: str) -> None:
    part = asked.place(catalogue.parts.rows[0].file("files"))
    before = part.read_bytes()
    with pytest.raises(UsageError, match="one SELECT"):
        catalogue.ask(sql.format(out=tmp_path / "out", part=part))
    assert list(tmp_path.iterdir()) == [] and part.read_bytes() == before
    assert len(catalogue.ask("select * from files").rows) == 7


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('{file}')",
        "select * from read_text('{file}')",
        "select * from read_blob('{file}')",
        "select * from '{file}'",
        "select * from glob('{folder}/*')",
        "select * from parquet_metadata('{file}')",
        "select * from read_parquet('https://127.0.0.1:9/x.parquet')",
        "select * from query('copy files to ''{folder}/out''')",
        "select getenv('HOME')",
        "select * from secret",
        "select * from arrow_scan(1::pointer, 1::pointer, 1::pointer)",
        "select exists(select * from pandas_scan(1))",
        "select * from enable_profiling(save_location = '{folder}/out')",
        "select * from enable_logging(storage = 'file', storage_path = '{folder}/out')",
        "with a as (select * from \"READ_csv\"('{file}')) select * from a",
        "select * from files, lateral (select * from read_csv(path))",
        "select * from query_table('{file}')",
    ],
)
def test_a_select_reads_nothing_but_the_parts(catalogue: Catalogue, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("password\nhunter2\n")
    with pytest.raises((UsageError, ReadError)) as told:
        catalogue.ask(sql.format(file=secret, folder=tmp_path))
    assert "hunter2" not in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize(
    "sql",
    [
        "describe files",
        "summarize tensors",
        "show tables",
        "from files",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n < 3) select sum(n) from t",
        "select unnest(shape) from tensors limit 1",
        "select * from range(3)",
        "select path, row_number() over (order by nbytes) from files qualify row_number() over (order by nbytes) < 3",
        "pivot files on kind in ('checkpoint') using count(*)",
    ],
)
def test_what_a_select_can_say_it_may(catalogue: Catalogue, sql: str) -> None:
    assert catalogue.ask(sql).rows


def test_a_question_that_does_not_end_is_stopped(catalogue: Catalogue) -> None:
    with pytest.raises(LimitExceeded, match=r"longer than 0\.2 s"):
        catalogue.ask(
            "select count(*) from range(10000000) a, range(10000000) b where a.range + b.range = 3", seconds=0.2
        )
    assert catalogue.ask("select 1").rows == ((1,),)


def test_what_duckdb_does_not_understand_is_one_sentence(catalogue: Catalogue) -> None:
    with pytest.raises(UsageError, match='"nopath" not found') as told:
        catalogue.ask("select nopath from files")
    assert "\n" not in str(told.value)


def test_tables_and_columns_are_listed_with_what_they_say(catalogue: Catalogue) -> None:
    rows = questions.tables(catalogue).rows
    assert {row[:2] for row in rows} == {("files", 7), ("tensors", 37), ("findings", rows[-1][1])}
    assert all(row[4] for row in rows)
