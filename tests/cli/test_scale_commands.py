"""The commands of docs/scale.md are run, on small files in the places that it names; `query`: tests/catalogue."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save, save_file

from inspector.cli.main import run
from inspector.remote import buckets
from inspector.sweep import engines
from inspector.sweep.store import existing_store
from sample_models.labelled import write_labelled

fsspec = pytest.importorskip("fsspec")

DOC = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
LINES = [
    line
    for block in re.findall(r"^```\n(.*?)^```$", DOC.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.startswith("inspector ") and not line.startswith("inspector query ")
]
# By a shell that counts, and from the hub (tests/remote/test_hub_files.py).
ARRAY = [line for line in LINES if "/scratch/" in line]
PLAIN = [line for line in LINES if line not in ARRAY and "hf://" not in line]
PICTURES = ("evaluate", "explain")
SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"


def shards() -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    names = {f"layers.{n}.weight": f"model-{n + 1:05}-of-00003.safetensors" for n in range(3)}
    files = {name: save({key: rng.standard_normal((30, 40 + n))}) for n, (key, name) in enumerate(names.items())}
    return {**files, "model.safetensors.index.json": json.dumps({"weight_map": names}).encode()}


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """/models, /audits and /scratch of the page."""
    root = tmp_path
    (root / "audits").mkdir()
    for folder in ("giant", "base"):
        (root / "models" / folder).mkdir(parents=True)
        for name, data in shards().items():
            (root / "models" / folder / name).write_bytes(data)
    (root / "models" / "list.txt").write_text(f"{root}/models/giant\n# and\n{root}/models/base\n")
    shutil.copy(SAMPLES / "shapes.pth", root / "models" / "net.pth")
    with zipfile.ZipFile(write_labelled(root / "shapes.zip", each=1)) as archive:
        archive.extractall(root / "data" / "val")
    save_file({"w": np.random.default_rng(1).standard_normal((9, 8))}, root / "models" / "small.safetensors")
    return root


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """s3:// of the page is fsspec's store in memory."""
    system = fsspec.filesystem("memory")
    for name, data in shards().items():
        system.pipe_file(f"/zoo/giant/{name}", data)
        system.pipe_file(f"/zoo/uploads/{name}", data)
    monkeypatch.setitem(buckets.SCHEMES, "memory", "fsspec")
    yield
    system.store.clear()


@pytest.fixture
def threads_for_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/sweep/test_cluster.py runs a real one; here its address stands for two threads."""
    real = engines.engine_of

    def engine_of(executor: str = "", jobs: int = 1) -> AbstractContextManager[engines.Engine]:
        return real("threads", 2) if executor.startswith("tcp://") else real(executor, jobs)

    places = (
        "inspector.giants.measure",
        "inspector.giants.pairs",
        "inspector.survey.survey",
        "inspector.sweep.engines",
    )
    for where in places:
        monkeypatch.setattr(f"{where}.engine_of", engine_of)


def arguments_of(line: str, places: Path) -> list[str]:
    # Processes that import torch take their time: tests/evaluate has one.
    jobs = "--jobs 1" if line.split()[1] in PICTURES else "--jobs 2"
    here = line.replace("s3://", "memory://").replace("--jobs 16", jobs)
    arguments = shlex.split(here, comments=True)[1:]
    return [f"{places}{one}" if one.startswith("/") else one for one in arguments]


def test_the_page_tells_of_each_command() -> None:
    assert {line.split()[1] for line in PLAIN} == {"audit", "merge-parts", "stats", "diff", "open", *PICTURES}
    assert len(PLAIN) >= 10 and len(ARRAY) == 6


@pytest.mark.parametrize("line", PLAIN)
def test_a_line_of_the_page_does_what_it_says(
    line: str,
    places: Path,
    bucket: None,
    threads_for_a_cluster: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = arguments_of(line, places)
    if arguments[0] == "merge-parts":
        before = next(one for one in PLAIN if f"--store {line.split()[2]}" in one)
        assert run(arguments_of(before, places)) == 0
    assert run(arguments) == 0, capsys.readouterr()
    out = capsys.readouterr().out
    if arguments[0] in ("open", "stats"):
        assert "3 tensors" in out or "layers.2.weight" in out
    if "--store" in arguments:
        blobs = existing_store(arguments[arguments.index("--store") + 1]).blobs
        assert blobs.names("results") or "--part" in arguments
    if "--catalogue" in arguments:
        assert run(["query", arguments[arguments.index("--catalogue") + 1]]) == 0


def test_an_array_of_jobs_ends_in_one_report(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    share, merge = (line.replace("/16", "/2") for line in ARRAY if "/scratch/part-" in line)
    for number in ("1", "2"):
        assert run(arguments_of(share.replace("$SLURM_ARRAY_TASK_ID", number), places)) == 0
    *before, stores = arguments_of(merge, places)
    found = sorted(str(path) for path in Path(stores).parent.glob(Path(stores).name))
    assert len(found) == 2 and run([*before, *found]) == 0
    # How the files fall into two parts depends on their paths; the report of both has all of them.
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("4 checkpoints, 1 other file in ") and "not come to their end" not in out


def test_an_array_of_jobs_ends_in_one_evaluation(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    share, merge = (line.replace("/16", "/1") for line in ARRAY if "/scratch/scores-" in line)
    assert run(arguments_of(share.replace("$SLURM_ARRAY_TASK_ID", "1"), places)) == 0
    *before, stores, out, where = arguments_of(merge, places)
    found = sorted(str(path) for path in Path(stores).parent.glob(Path(stores).name))
    assert len(found) == 1 and run([*before, *found, out, where]) == 0
    assert "of 4 pictures" in capsys.readouterr().out
    assert (Path(where) / "scores.npy").is_file()


def test_an_array_of_jobs_ends_in_one_store_of_heat_maps(
    places: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    share, merge = (line.replace("/16", "/2") for line in ARRAY if "/scratch/maps-" in line)
    circles = places / "data" / "val" / "circle"
    one = next(circles.iterdir())
    for number in range(33):  # Two pieces, one for each part.
        shutil.copy(one, circles / f"copy{number}{one.suffix}")
    for number in ("1", "2"):
        assert run(arguments_of(share.replace("$SLURM_ARRAY_TASK_ID", number), places)) == 0
    command, stores, option, into = arguments_of(merge, places)
    found = sorted(str(path) for path in Path(stores).parent.glob(Path(stores).name))
    parts = sum(len(existing_store(one).blobs.names("results")) for one in found)
    capsys.readouterr()
    assert len(found) == 2 and run([command, *found, option, into]) == 0
    assert f"{parts} parts of results came into" in capsys.readouterr().err

    def nobody(*_: object, **__: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(engines.Inline, "submit", nobody)
    whole = next(line for line in PLAIN if line.startswith("inspector explain ") and "--csv" in line)
    assert run(arguments_of(whole, places)) == 0
    assert len((places / "audits" / "maps.csv").read_text().splitlines()) == 1 + len(list(circles.iterdir()))
