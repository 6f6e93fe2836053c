"""A minute of the fuzzers; the long run is `make fuzz`."""

from __future__ import annotations

import importlib.util
import pickle
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fuzzer() -> ModuleType:
    return load("fuzz")


@pytest.fixture(scope="module")
def pool(fuzzer: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return fuzzer.samples(str(tmp_path_factory.mktemp("fuzz") / "marker"))


@pytest.mark.parametrize("seed", [1, 2])
def test_mutants_end_in_checkpoints_or_errors_of_ours(
    fuzzer: ModuleType, pool: dict[str, bytes], seed: int, tmp_path: Path, thorough: bool
) -> None:
    counts = fuzzer.fuzz(30_000 if thorough else 2_000, seed=seed, pool=pool, keep=tmp_path)
    assert "bug" not in counts, sorted(path.name for path in tmp_path.iterdir())
    # Both ends are reached, so the mutants are neither all harmless nor all rubbish.
    assert counts["checkpoint"] > 50 and counts["CorruptFile"] > 5 and counts["UnknownFormat"] > 5


def test_the_samples_are_of_every_format(fuzzer: ModuleType, pool: dict[str, bytes]) -> None:
    from inspector.readers import FOLDER_READERS, READERS, open_checkpoint

    pytest.importorskip("onnx")
    found = set()
    for data in pool.values():
        answer = fuzzer.exercise(data)
        if not isinstance(answer, Exception):
            found.add(answer.format)
    ids = {reader.id for reader in (*READERS, *FOLDER_READERS)}
    # A packed archive is opened as what is in it, and an index is opened as its folder.
    assert open_checkpoint(pool["gzip of a legacy file"]).format == "torch-legacy"
    assert ids - found <= {"packed", "shard-index", "dcp-file", "dcp-safetensors"}, ids - found


def test_a_bug_is_counted(fuzzer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(fuzzer, "exercise", broken)
    assert fuzzer.fuzz(3, seed=0, pool={"one": b"\x80\x02N."}) == {"bug": 3}


def test_mutants_are_seeded(fuzzer: ModuleType, pool: dict[str, bytes]) -> None:
    files = list(pool.values())
    again = [[fuzzer.mutate(random.Random(seed), files) for seed in range(50)] for _ in range(2)]
    assert again[0] == again[1]


def test_the_payload_is_a_real_one(fuzzer: ModuleType, tmp_path: Path) -> None:
    """The quiet twin: Python's own loader would run it."""
    marker = tmp_path / "marker"
    assert pickle.loads(pickle.dumps(fuzzer.samples.__globals__["Payload"](str(marker)))) is not None
    assert marker.exists()


def test_damage_inside_keeps_what_is_around_it(fuzzer: ModuleType, pool: dict[str, bytes]) -> None:
    """Archives stay archives, and the header of a safetensors file as long as it says."""
    import io
    import zipfile

    files = list(pool.values())
    inside = sys.modules["fuzz_mutators"].damage_inside
    for seed in range(40):
        made = inside(pool["state dict, zip"], random.Random(seed), files)
        assert zipfile.ZipFile(io.BytesIO(made)).testzip() is None
        made = inside(pool["safetensors"], random.Random(seed), files)
        n = int.from_bytes(made[:8], "little")
        assert made[8 : 8 + n][:1] not in (b"", b" ") and made[8 + n :] == pool["safetensors"][-32:]


def test_the_guided_fuzzer_starts(tmp_path: Path) -> None:
    """With atheris or without it."""
    command = [sys.executable, str(SCRIPTS / "fuzz_guided.py"), "--seconds", "3", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not list(tmp_path.iterdir())
