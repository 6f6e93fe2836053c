"""`query` as a person types it: every line of docs/scale.md, the forms of an answer, and what is said without one."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import signal
import sys
import threading
from pathlib import Path

import pytest

from inspector.cli.main import run
from inspector.cli.signals import signals_raised
from inspector.errors import MissingLibrary
from inspector.installed import install_line
from tests.catalogue.zoo import make_zoo

DOCS = Path(__file__).resolve().parents[2] / "docs" / "scale.md"


def lines() -> list[str]:
    """The section's lines, as the docs have them."""
    section = DOCS.read_text(encoding="utf-8").partition("## The catalogue\n")[2].partition("\n## ")[0]
    found = [line.removeprefix("inspector ") for line in section.splitlines() if line.startswith("inspector ")]
    assert len(found) >= 10
    return found


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the store, made by the section's first line."""
    root = tmp_path_factory.mktemp("docs")
    make_zoo(root / "models")
    first = lines()[0]
    assert first.startswith("audit ")
    assert run(at(root, first)) == 1  # The hostile pickle.
    return root


def at(root: Path, line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    return [re.sub(r"^/(models|audits)", lambda match: str(root / match[1]), word) for word in words]


@pytest.mark.parametrize("line", lines()[1:])
def test_every_line_of_the_docs_answers(
    audited: Path, line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(at(audited, line)) == 0
    said = capsys.readouterr()
    assert said.err == ""
    if "--output" in line:
        (written,) = tmp_path.iterdir()
        assert len(written.read_text().splitlines()) > 1 and said.out == ""
    elif "float64" in line:
        assert json.loads(said.out) == []
    else:
        assert re.search(r"^\d+ rows?$", said.out.strip().splitlines()[-1])


def ask(audited: Path, *words: str) -> int:
    return run(["query", str(audited / "audits" / "models"), *words])


def test_the_forms_say_the_same(audited: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sql = "select path, tensors, dtypes, severity from files order by path"
    assert ask(audited, sql, "--format", "json") == 0
    objects = json.loads(capsys.readouterr().out)
    assert len(objects) == 7 and objects[0]["dtypes"] == {"float32": 6} and objects[3]["severity"] == "error"
    assert ask(audited, sql, "--format", "csv") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["path"] for row in rows] == [one["path"] for one in objects]
    assert rows[0]["tensors"] == "6" and rows[0]["severity"] == ""
    for name in ("a.csv", "a.json", "a.txt"):
        assert ask(audited, sql, "--out", str(tmp_path / name)) == 0
    assert json.loads((tmp_path / "a.json").read_text()) == objects
    assert list(csv.DictReader((tmp_path / "a.csv").open())) == rows
    assert (tmp_path / "a.txt").read_text().splitlines()[0] == "path\ttensors\tdtypes\tseverity"


def test_a_file_that_is_there_is_replaced_only_where_that_is_said(
    audited: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = tmp_path / "o.csv"
    place.write_text("mine")
    assert ask(audited, "select 1 as a", "--output", str(place)) == 2
    assert "o.csv exists already. Choose another name, or pass --overwrite." in capsys.readouterr().err
    assert place.read_text() == "mine"
    assert ask(audited, "select 1 as a", "--output", str(place), "--overwrite") == 0
    assert place.read_text() == "a\n1\n"
    assert ask(audited, "select 1 as a", "--format", "csv", "--output", str(tmp_path / "x.parquet")) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_question_that_is_interrupted_ends_with_a_word(
    audited: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.5, os.kill, (os.getpid(), number))
    timer.start()
    try:
        with signals_raised():
            code = ask(audited, "select count(*) from range(100000000000) a, range(10000000) b")
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, heeded)
    assert code == 128 + number and capsys.readouterr().err == "Stopped.\n"


def test_a_store_of_another_version_is_not_asked(
    audited: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = tmp_path / "s"
    shutil.copytree(audited / "audits" / "models", store)
    for mark, code in (('{"format": "inspector store", "version": 99}', 2), ('{"format": "insp', 0)):
        (store / "store.json").write_text(mark)
        assert run(["query", str(store), "select count(*) from files"]) == code
    assert "s is no store of this version." in capsys.readouterr().err


def test_rows_are_limited_where_they_are_printed(audited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(audited, "select path from files", "--limit", "2") == 0
    assert "2 rows and more: --limit 0 shows all" in capsys.readouterr().out
    assert ask(audited, "select path from files", "--limit", "2", "--format", "csv") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert ask(audited, "select path from files where false") == 0
    assert capsys.readouterr().out.strip() == "No row."


def test_a_formula_in_a_name_is_text_in_a_spreadsheet_and_control_signs_are_written_out(
    audited: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "select '=1+1' as a, chr(27) || '[31m' as b, 1.5::double as c, 'nan'::double as d"
    assert ask(audited, sql, "--format", "csv") == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("'=1+1,")
    assert ask(audited, sql) == 0
    assert "\x1b[31m" not in capsys.readouterr().out
    assert ask(audited, sql, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)[0] == {"a": "=1+1", "b": "\x1b[31m", "c": 1.5, "d": "NaN"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["copy files to 'x'"], "A question is one SELECT."),
        (["select 1", "--trunks"], "That is more than one question."),
        (["select * from read_csv('/etc/passwd')"], "A question may not call read_csv."),
        (["select path from files", "--output", "{store}/x.csv"], "That is in the store itself."),
        (["select path from files", "--output", "x.parquet"], "x.parquet: no .parquet is written."),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    audited: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(audited / "audits" / "models")
    assert ask(audited, *(word.replace("{store}", store) for word in words)) == 2
    said = capsys.readouterr()
    assert says in said.err and said.out == "" and said.err.count("\n") == 1


def test_without_a_catalogue_or_a_store_it_says_how_to_make_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["query", str(tmp_path)]) == 2
    assert "There is no catalogue in" in capsys.readouterr().err


def test_an_audit_that_found_no_file_has_an_empty_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "models").mkdir()
    store = str(tmp_path / "store")
    assert run(["audit", str(tmp_path / "models"), "--store", store]) == 0
    capsys.readouterr()
    for words in (["select path from files"], ["--duplicates", "files"], ["--duplicates", "tensors"], ["--trunks"]):
        assert run(["query", store, *words, "--format", "json"]) == 0
        said = capsys.readouterr()
        assert (json.loads(said.out), said.err) == ([], "")
    assert run(["query", store]) == 0
    assert "files" in capsys.readouterr().out
    assert run(["query", str(tmp_path / "none")]) == 2
    assert "is no folder" in capsys.readouterr().err


def test_without_duckdb_an_audit_is_whole_and_says_so_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_zoo(tmp_path / "zoo")
    (tmp_path / "zoo" / "evil.pkl").unlink()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    line = ["audit", str(tmp_path / "zoo"), "--store", str(tmp_path / "s"), "--digest", "--jobs", "1"]
    assert run(line) == 0
    said = capsys.readouterr()
    assert (
        said.err
        == f"No catalogue was made. A catalogue needs duckdb, which is not installed. {install_line('duckdb')}\n"
    )
    assert "6 checkpoints" in said.out
    assert run(["query", str(tmp_path / "s")]) == 2
    assert capsys.readouterr().err == f"A catalogue needs duckdb, which is not installed. {install_line('duckdb')}\n"
    # The store has all of it: on a machine with DuckDB the catalogue is made without reading the files again.
    monkeypatch.undo()
    for path in (tmp_path / "zoo").iterdir():
        path.unlink()
    assert run(["merge-parts", str(tmp_path / "s")]) == 0
    assert run(["query", str(tmp_path / "s"), "select count(*) as n from tensors", "--format", "csv"]) == 0
    assert capsys.readouterr().out.endswith("n\n37\n")
    assert issubclass(MissingLibrary, Exception)


def test_parts_in_stores_of_their_own_are_asked_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_zoo(tmp_path / "zoo")
    stores = [str(tmp_path / f"part-{number}") for number in (1, 2)]
    for number, store in enumerate(stores, 1):
        run(["audit", str(tmp_path / "zoo"), "--store", store, "--part", f"{number}/2", "--jobs", "1"])
    assert run(["merge-parts", *stores, "--catalogue", str(tmp_path / "all")]) == 1
    capsys.readouterr()
    assert run(["query", str(tmp_path / "all"), "select count(*) as n from files", "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert said.out == "n\n7\n" and said.err == ""


def test_a_damaged_part_is_told_beside_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_zoo(tmp_path / "zoo")
    run(["audit", str(tmp_path / "zoo"), "--store", str(tmp_path / "s"), "--jobs", "1"])
    (index,) = (tmp_path / "s" / "catalogue").glob("shared_groups-*.parquet")
    index.write_bytes(index.read_bytes()[:-1])
    capsys.readouterr()
    assert run(["query", str(tmp_path / "s"), "select path from files"]) == 0
    said = capsys.readouterr()
    assert f"first {index.name}; the others answer" in said.err and "7 rows" in said.out
