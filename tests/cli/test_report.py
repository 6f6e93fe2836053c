"""`inspector report`: the page, the data, what is refused, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector import read_report
from inspector.cli.main import run
from tests.file_report.made import SAMPLES

Out = pytest.CaptureFixture[str]


def test_the_page_and_its_data_are_one_report(tmp_path: Path, capsys: Out) -> None:
    file = str(SAMPLES / "shapes_sick.pth")
    assert run(["report", file, "-o", str(tmp_path / "r.html")]) == 1  # NaN in it
    assert capsys.readouterr().out.startswith("Wrote r.html, ")
    assert run(["report", file, "--json", "--output", str(tmp_path / "r.json")]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "r.json").read_text())
    assert printed["schema"] == "model-inspector/report/1" and printed["engine"]["name"] == "model-inspector"
    assert read_report(tmp_path / "r.html") == read_report(tmp_path / "r.json")


def test_headers_alone_answer_when_that_is_asked(tmp_path: Path, capsys: Out) -> None:
    target = "torchvision/shufflenet_v2_x0_5?num_classes=4"
    line = ["report", str(SAMPLES / "shapes_sick.pth"), "--no-numbers", "--json", "--target", target]
    assert run(line) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["numbers_read"] is False and plain["file"]["sha256"] == ""
    assert plain["repair"]["target"] == target


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "Where should the report go? Give --output report.html, or --json."),
        (["-o", "report.pdf"], 'The name "report.pdf" does not say what to write.'),
        (["-o", "net.html"], "net.html is a file that this reads."),
        (["-o", "missing/r.html"], "The folder of r.html does not exist."),
    ],
)
def test_what_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out, options: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.html").write_bytes((SAMPLES / "bare_tensor.pt").read_bytes())
    assert run(["report", "net.html", *options]) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["net.html"]
