"""Two checkpoints compared by pieces: the report of one pass to the last bit, nothing read twice, what changes told."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from inspector.checkpoint.types import Checkpoint
from inspector.cli.main import run
from inspector.compare.diff import compare_checkpoints
from inspector.compare.report import Diff, Relation
from inspector.errors import ExportError
from inspector.giants.pairs import PairsByPieces, compare_piece
from inspector.readers import open_checkpoint
from inspector.sweep.engines import Given, Inline, engine_of
from inspector.sweep.piece import Outcome
from inspector.sweep.store import open_store


def states() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Every relation that a pair can have, and what cannot be cut: views, ties, sparse and complex tensors."""
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    weight, turned = randn(90, 40), randn(50, 50)
    one = {
        "same": randn(300, 40),
        "changed": weight,
        "tied": weight,
        "cast": randn(70, 70),
        "cut": randn(70, 30),
        "grown": randn(30, 20),
        "turned": turned,
        "axes": randn(20, 30),
        "sparse": torch.eye(6).to_sparse(),
        "complex": torch.randn(8, 9, dtype=torch.complex64, generator=generator),
        "nan": torch.tensor([1.0, float("nan"), float("inf"), -0.0]),
        "removed": randn(7),
        "count": torch.tensor(7),
    }
    changed = weight + 1e-3 * randn(90, 40)
    two = {
        **{name: value for name, value in one.items() if name not in ("removed", "changed", "tied")},
        "changed": changed,
        "tied": changed,
        "cast": one["cast"].bfloat16(),
        "cut": (one["cut"].view(torch.int32) & -65536).view(torch.float32).bfloat16(),
        "grown": torch.cat([one["grown"], randn(5, 20)]),
        "turned": turned.T.contiguous(),
        "axes": one["axes"].T.contiguous(),
        "sparse": (2 * torch.eye(6)).to_sparse(),
        "nan": torch.tensor([1.0, float("nan"), float("-inf"), 0.0]),
        "added": randn(3),
        "count": torch.tensor(9),
    }
    return one, two


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("pairs")
    one, two = states()
    torch.save(one, root / "one.pth")
    # The second in shards.
    (root / "two").mkdir()
    plain = {name: value.to_dense() if value.is_sparse else value.clone() for name, value in two.items()}
    names = {}
    for number, part in enumerate((sorted(plain)[:6], sorted(plain)[6:]), 1):
        name = f"model-{number:05}-of-00002.safetensors"
        save_file({key: plain[key] for key in part}, root / "two" / name)
        names.update(dict.fromkeys(part, name))
    (root / "two" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    torch.save(two, root / "two.pth")
    return root / "one.pth", root / "two"


def told(found: Diff) -> str:
    """The whole report but its time, to the last bit, NaN included."""
    return repr(dataclasses.replace(found, seconds=0.0))


def opened(files: Sequence[Path]) -> tuple[Checkpoint, Checkpoint]:
    return open_checkpoint(files[0]), open_checkpoint(files[1])


@pytest.mark.parametrize("second", ["two", "two.pth", "one.pth"])
@pytest.mark.parametrize("most_nbytes", [1, 20_000, 1 << 28])
def test_pieces_of_any_size_give_what_one_pass_gives(files: tuple[Path, Path], second: str, most_nbytes: int) -> None:
    a, b = opened((files[0], files[0].with_name(second)))
    once = compare_checkpoints(a, b)
    if second == "two.pth":
        relations = {tensor.relation for tensor in once.tensors}
        assert relations >= set(Relation) - {Relation.UNREAD, Relation.TRUNCATED}, relations
    found = compare_checkpoints(a, b, pairwise=PairsByPieces(Inline(), most_nbytes=most_nbytes))
    assert told(found) == told(once)


def test_one_checkpoint_against_itself_is_seen_to_be_one(files: tuple[Path, Path]) -> None:
    a = open_checkpoint(files[0])
    pairwise = PairsByPieces(_Nobody())
    assert told(compare_checkpoints(a, a, pairwise=pairwise)) == told(compare_checkpoints(a, a))


def test_every_engine_gives_it_and_the_store_gives_it_again(files: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = opened(files)
    once = told(compare_checkpoints(a, b))
    with ThreadPoolExecutor(3) as pool:
        pairwise = PairsByPieces(Given(pool, 3), open_store(str(tmp_path / "s")), most_nbytes=20_000)
        assert told(compare_checkpoints(a, b, pairwise=pairwise)) == once
    with engine_of("processes", 2) as engine:
        assert told(compare_checkpoints(a, b, pairwise=PairsByPieces(engine, most_nbytes=20_000))) == once
    # From the store alone, and not for other files of the same length.
    kept = PairsByPieces(_Nobody(), open_store(str(tmp_path / "s")), most_nbytes=20_000)
    assert told(compare_checkpoints(*opened(files), pairwise=kept)) == once
    other = tmp_path / "one.pth"
    other.write_bytes(files[0].read_bytes())
    with pytest.raises(AssertionError, match="asked again"):
        compare_checkpoints(*opened((other, files[1])), pairwise=kept)


class _Nobody(Inline):
    def submit(self, *_: Any) -> Any:
        raise AssertionError("asked again")


def test_a_file_that_changes_is_told_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 2.0)):
        save_file({"w": torch.full((300,), value), "v": torch.full((300,), value)}, tmp_path / f"{name}.safetensors")
    places = (tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    store = open_store(str(tmp_path / "s"))

    class Changing(Inline):
        def submit(self, function: Any, /, *args: Any) -> Any:
            future = super().submit(function, *args)
            status = places[1].stat()
            os.utime(places[1], ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
            return future

    found = compare_checkpoints(*opened(places), pairwise=PairsByPieces(Changing(), store, most_nbytes=1))
    notes = [tensor.note for tensor in found.tensors if tensor.relation is Relation.UNREAD]
    assert notes == ["b.safetensors changed while it was read: ask again."]
    # What was read before it changed says something of the file that it was then.
    assert len(store.blobs.names("results")) == 1


def test_a_pair_that_no_worker_survives_costs_itself(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fatal(item: Any) -> Outcome:
        if any(x.name == "cast" for x, _ in item.tensors):
            raise MemoryError
        return compare_piece(item)

    monkeypatch.setattr("inspector.giants.pairs.compare_piece", fatal)
    a, b = opened(files)
    found = compare_checkpoints(a, b, pairwise=PairsByPieces(Inline(), most_nbytes=1))
    unread = {tensor.name: tensor.note for tensor in found.tensors if tensor.relation is Relation.UNREAD}
    assert unread == {"cast": "the process that read it ran out of memory"}


def test_the_command(files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*more: str) -> dict[str, Any]:
        assert run(["diff", str(files[0]), str(files[1]), "--json", *more]) == 1
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found | {"seconds": 0}

    once = printed()
    assert printed("--store", str(tmp_path / "s")) == once
    assert printed("--store", str(tmp_path / "s"), "--executor", "threads", "--jobs", "1") == once


def test_a_store_that_is_full_ends_it(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path / "s"))

    def full(*_: object) -> None:
        raise ExportError("The store s cannot be written: No space left on device.")

    monkeypatch.setattr(store.blobs, "write", full)
    with pytest.raises(ExportError, match="No space left"):
        compare_checkpoints(*opened(files), pairwise=PairsByPieces(Inline(), store))


def test_numbers_of_a_piece_are_those_of_numpy(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    one, two = (rng.standard_normal((64, 33)).astype(np.float32) for _ in "ab")
    save_file({"w": torch.from_numpy(one)}, tmp_path / "a.safetensors")
    save_file({"w": torch.from_numpy(two)}, tmp_path / "b.safetensors")
    a, b = opened((tmp_path / "a.safetensors", tmp_path / "b.safetensors"))
    (tensor,) = compare_checkpoints(a, b, pairwise=PairsByPieces(Inline())).tensors
    assert tensor.numbers is not None
    wide = two.astype(np.float64) - one.astype(np.float64)
    assert tensor.numbers.norm_delta == pytest.approx(float(np.linalg.norm(wide)), rel=1e-12)
