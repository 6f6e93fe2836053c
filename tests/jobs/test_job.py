"""A question is known by a digest of what is asked: equal ones are one, different ones never are."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest

from inspector.cam.report import Options, Preprocessing
from inspector.jobs.bench import Bench
from inspector.jobs.job import Job
from inspector.jobs.kinds.table import KINDS, kind_named
from inspector.jobs.results import Results
from inspector.jobs.settings import Settings, own_settings
from inspector.jobs.subjects import CodeRef, FileRef, Held, Naming, PictureRef, Subject, Wanted


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class One:
    value: object


@dataclass(frozen=True)
class Other:
    value: object


def test_what_differs_has_another_key() -> None:
    array = np.arange(6, dtype=np.float32)
    values: list[object] = [
        None, True, 1, 1.0, "1", b"1", "", (), (1,), (1, 1), ((1,), 1), "a b", ("a", "b"), ("ab",), Colour.RED, "red",
        One(1), Other(1), One("1"), One(None), array, array.reshape(2, 3), array.astype(np.float64), array + 1,
        -0.0, 0.0, float("nan"), {"a": 1}, {"a": 2}, frozenset({1, 2}), Path("a"), ("tuple", "1"), 10**30,
    ]  # fmt: skip
    keys = [Job(kind="trial", arguments=(value,)).key for value in values]
    assert len(set(keys)) == len(values)
    assert Job(kind="long-trial", arguments=(1,)).key != Job(kind="trial", arguments=(1,)).key


def test_whatever_is_asked_of_a_file_with_a_person_s_code_goes_to_a_worker_of_its_own(tmp_path: Path) -> None:
    """Told by the file itself, so that no page can forget it."""
    code = CodeRef(text="code:net.py:Net", folder=tmp_path, sha256="1" * 64, agreed="a word")
    plain = FileRef(sha256="0" * 64, name="net.pth", path=tmp_path / "net.pth")
    own = replace(plain, code=code)
    picture = PictureRef(sha256="2" * 64, name="a.png", path=tmp_path / "a.png")
    steps = Preprocessing(
        resize=None, crop=None, mean=(0.0,), std=(1.0,), channels=1, interpolation="bilinear", source="", assumed=False
    )
    for file, word in ((own, "a word"), (plain, "")):
        subject = Subject(file=file, picture=picture, preprocessing=steps, layers=())
        for arguments in (
            (file,),
            (file, (3, 32, 32)),
            (subject, Wanted(method="grad-cam"), 1, Naming()),
            (Held(pair=file),),
        ):
            assert Job(kind="map", arguments=arguments).apart == word
    assert Job(kind="facts", arguments=(own,)).key != Job(kind="facts", arguments=(plain,)).key


def test_what_is_equal_has_one_key() -> None:
    one, two = (
        FileRef(sha256="0" * 64, name="a", path=Path("/here")),
        FileRef(sha256="0" * 64, name="a", path=Path("/there")),
    )
    # Where it lies takes no part.
    assert Job(kind="facts", arguments=(one,)).key == Job(kind="facts", arguments=(two,)).key
    assert Job(kind="facts", arguments=(replace(one, confirmed="x"),)).key != Job(kind="facts", arguments=(one,)).key
    wanted = [Wanted(method="grad-cam", options=Options(seed=seed)) for seed in (0, 0, 1)]
    keys = [Job(kind="map", arguments=(each,)).key for each in wanted]
    assert keys[0] == keys[1] != keys[2]
    assert Job(kind="trial", arguments=([1], 2), known_by="x").key == Job(kind="trial", known_by="x").key
    assert Job(kind="trial", near="a").key == Job(kind="trial", near="b").key


def test_what_cannot_be_known_is_no_argument() -> None:
    with pytest.raises(TypeError):
        _ = Job(kind="trial", arguments=(object(),)).key


def test_every_kind_names_work_that_exists() -> None:
    assert len({kind.id for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert callable(kind.work()), kind.id
        assert kind_named(kind.id) is kind
        assert not kind.says.endswith(".") and kind.nbytes > 0 and kind.seconds > 0


def test_results_over_their_bound_go_oldest_first(tmp_path: Path) -> None:
    results = Results(tmp_path / "results", 250)
    keys = [f"{n:064x}" for n in range(4)]
    for age, key in enumerate(keys):
        results.write(key, bytes(100))
        os.utime(results._place(key), (1000 + age, 1000 + age))
    assert results.read(keys[0]) == bytes(100)  # used now: it stays
    assert results.sweep() == 200
    assert [results.read(key) is not None for key in keys] == [True, False, False, True]
    for name, age in (("half", 3600), ("another servers", 1)):
        part = tmp_path / "results" / f"{name}.part"
        part.write_bytes(b"x")
        os.utime(part, (time.time() - age, time.time() - age))
    results.clear_rests()
    assert len(list((tmp_path / "results").iterdir())) == 3  # one half file is younger than any write takes


def test_no_name_of_a_result_is_a_path(tmp_path: Path) -> None:
    results = Results(tmp_path / "results", 100)
    for name in ("../x", "", "A" * 64, "0" * 63, f"{'0' * 64}\n"):
        with pytest.raises(ValueError, match="no key"):
            results.write(name, b"x")


def test_a_bench_keeps_what_fits_and_lets_the_least_used_go(tmp_path: Path) -> None:
    bench = Bench(Settings(workers=0, memory_nbytes=0, threads=1, results=tmp_path), None, kept_nbytes=100)  # type: ignore[arg-type]
    made: list[str] = []

    def kept(name: str, nbytes: int) -> str:
        return bench.keep(name, lambda: made.append(name) or name, nbytes=lambda _: nbytes, tag=name)  # type: ignore[func-returns-value]

    for name in ("a", "b", "a", "c"):
        kept(name, 40)
    assert (made, bench.tags) == (["a", "b", "c"], {"a", "c"})
    # Larger than all that may be kept: it alone stays while it is in use.
    kept("large", 1000)
    assert bench.tags == {"large"}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("INSPECTOR_WORKERS", "many", "no number of processes"),
        ("INSPECTOR_WORKERS", "-1", "no number of processes"),
        ("INSPECTOR_MEMORY", "lots", "no amount of memory"),
        ("INSPECTOR_MEMORY", "20MB", "too little"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    from inspector.errors import UsageError

    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=says):
        own_settings(tmp_path)


def test_settings_as_the_operator_states_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECTOR_WORKERS", "3")
    monkeypatch.setenv("INSPECTOR_MEMORY", "4.5GB")
    found = own_settings(tmp_path)
    assert (found.workers, found.memory_nbytes) == (3, 4_500_000_000)
