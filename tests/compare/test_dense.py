"""Sparse tensors are held against others by their places, in whichever layout; what cannot be is unread."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from inspector.compare import dense
from inspector.compare.diff import compare_checkpoints
from inspector.compare.merges import find_merge
from inspector.compare.report import Diff, Relation, TensorDiff
from tests.compare.files import opened

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def numbers(seed: int = 0) -> torch.Tensor:
    made = torch.randn(8, 6, generator=torch.Generator().manual_seed(seed))
    return torch.where(made > 0.3, made, torch.zeros(()))


def pair(folder: Path, a: torch.Tensor, b: torch.Tensor) -> Diff:
    for name, tensor in (("a", a), ("b", b)):
        torch.save({"w": tensor, "b": torch.ones(3)}, folder / f"{name}.pth")
    return compare_checkpoints(opened(folder / "a.pth"), opened(folder / "b.pth"))


def one(diff: Diff) -> TensorDiff:
    return next(tensor for tensor in diff.tensors if tensor.name == "w")


def layouts(x: torch.Tensor) -> dict[str, torch.Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"coo": x.to_sparse(), "csr": x.to_sparse_csr(), "csc": x.to_sparse_csc(), "dense": x}


@pytest.mark.parametrize("how", ["coo", "csr", "csc"])
def test_a_sparse_tensor_beside_a_dense_one(tmp_path: Path, how: str) -> None:
    same = one(pair(tmp_path, layouts(numbers())[how], numbers()))
    assert (same.relation, same.note) == (Relation.CAST, "every number as it was")
    other = numbers(1)
    found = one(pair(tmp_path, layouts(numbers())[how], other)).numbers
    assert found is not None
    apart = (other.double() - numbers().double()).pow(2).sum().item()
    assert (found.n, found.equal) == (48, int((other == numbers()).sum()))
    assert found.square_delta == pytest.approx(apart, rel=1e-12)


def test_equal_values_at_other_places(tmp_path: Path) -> None:
    def at(places: list[int]) -> torch.Tensor:
        return torch.sparse_coo_tensor(torch.tensor([places, places]), torch.tensor([1.0, 2.0, 3.0]), (8, 8))

    found = one(pair(tmp_path, at([0, 1, 2]), at([3, 4, 5]))).numbers
    assert found is not None
    assert (found.n, found.equal, found.square_delta) == (64, 58, 28.0)
    # A place that occurs twice holds the sum.
    twice = torch.sparse_coo_tensor(torch.tensor([[2, 2], [3, 3]]), torch.tensor([1.0, 2.5]), (8, 8))
    once = torch.zeros(8, 8)
    once[2, 3] = 3.5
    assert one(pair(tmp_path, twice, once)).note == "every number as it was"


def test_what_is_too_large_or_of_blocks_is_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks = numbers().to_sparse_bsr((2, 2))
    found = one(pair(tmp_path, blocks, numbers()))
    assert found.relation is Relation.UNREAD and "BSR" in found.note
    monkeypatch.setattr(dense, "MOST_DENSE", 47)
    found = one(pair(tmp_path, numbers().to_sparse(), numbers(1).to_sparse()))
    assert found.relation is Relation.UNREAD and "compared up to 47" in found.note
    assert one(pair(tmp_path, numbers().to_sparse(), numbers().to_sparse())).relation is Relation.SAME


def test_sparse_parents_of_a_merge_are_taken_by_their_places(tmp_path: Path) -> None:
    """Stored values that add up, at places that do not."""
    random = torch.Generator().manual_seed(1)
    values = torch.randn(2, 200, generator=random)
    files = []
    for n, (stored, start) in enumerate(((values[0], 0), (values[1], 200), ((values[0] + values[1]) / 2, 400))):
        at = torch.arange(start, start + 200)[None]
        torch.save({"w": torch.sparse_coo_tensor(at, stored, (600,))}, tmp_path / f"{n}.pth")
        files.append(opened(tmp_path / f"{n}.pth"))
    assert find_merge(files) is None
