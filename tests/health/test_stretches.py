"""Zeroed and repeated stretches, as a broken download leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only

KINDS = ("zero-stretch", "repeated-stretch")


def _weight(rows: int = 200, columns: int = 100) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(rows, columns)


def test_the_end_is_missing(tmp_path: Path) -> None:
    weight = _weight()
    weight.view(-1)[15_001:] = 0
    found = only(observe(tmp_path, {"fc.weight": weight}, *KINDS))
    assert found.severity is Severity.ERROR
    assert found.says == "fc.weight is zero from [150, 1] to its end, 20.0 kB of zeros in a row."
    assert (number(found, "begin"), number(found, "end")) == (15_001, 20_000)


def test_pages_are_missing_in_the_middle(tmp_path: Path) -> None:
    weight = _weight()
    weight.view(-1)[4096:6144] = 0
    found = only(observe(tmp_path, {"fc.weight": weight}, *KINDS))
    assert (number(found, "begin"), number(found, "end"), number(found, "nbytes")) == (4096, 6144, 8192)
    assert "from [40, 96] to [61, 43]" in found.says


def test_less_than_a_page_whole_rows_and_sparse_weights_are_quiet(tmp_path: Path) -> None:
    short, rows, sparse, blocks = _weight(), _weight(), _weight(), _weight(192, 192)
    short.view(-1)[19_501:] = 0
    rows[150:] = 0
    sparse *= torch.rand_like(sparse) > 0.995
    blocks *= torch.block_diag(*[torch.ones(64, 64)] * 3)
    state = {"a.weight": short, "b.weight": rows, "c.weight": sparse, "d.weight": blocks}
    assert observe(tmp_path, state, *KINDS) == ()


def test_a_mebibyte_that_was_written_twice(tmp_path: Path) -> None:
    weight = _weight(700, 1000)
    flat = weight.view(-1)
    flat[300_032:600_064] = flat[:300_032].clone()
    found = only(observe(tmp_path, {"fc.weight": weight}, *KINDS))
    assert (found.id, found.severity) == ("repeated-stretch", Severity.ERROR)
    assert (number(found, "nbytes"), number(found, "begin"), number(found, "copy_of")) == (4 * 300_032, 300_032, 0)


def test_whole_rows_are_left_to_the_check_of_rows(tmp_path: Path) -> None:
    weight = _weight(700, 1024)
    weight[350:] = weight[:350]
    assert observe(tmp_path, {"fc.weight": weight}, *KINDS) == ()
    assert only(observe(tmp_path, {"fc.weight": weight}, "duplicate-filters")).severity is Severity.WARNING


@pytest.mark.parametrize(("begin", "length"), [(250, 512), (2062, 1024), (19_488, 512), (0, 530)])
def test_two_kibibytes_are_a_stretch_wherever_they_lie(tmp_path: Path, begin: int, length: int) -> None:
    weight = _weight()
    weight.view(-1)[begin : begin + length] = 0
    found = only(observe(tmp_path, {"fc.weight": weight}, *KINDS, "dead-outputs"))
    assert (found.id, number(found, "begin"), number(found, "end")) == ("zero-stretch", begin, begin + length)


def test_rows_and_inputs_that_are_zero_are_no_stretch(tmp_path: Path) -> None:
    weight = _weight()
    weight[20:25], weight[:, 0], weight[:, -1] = 0, 0, 0
    assert observe(tmp_path, {"fc.weight": weight}, *KINDS) == ()
    assert only(observe(tmp_path, {"fc.weight": weight}, "dead-outputs")).severity is Severity.WARNING


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("begin", [0, 700])
def test_four_kibibytes_over_and_over(tmp_path: Path, begin: int, dtype: torch.dtype) -> None:
    weight = _weight(64, 576).to(dtype).view(64, 64, 3, 3)
    length = 4096 // weight.element_size()
    flat = weight.view(-1)
    flat[begin + length : begin + 8 * length] = flat[begin : begin + length].clone().repeat(7)
    found = only(observe(tmp_path, {"conv.weight": weight}, *KINDS))
    assert (found.id, found.severity) == ("repeated-stretch", Severity.ERROR)
    assert (number(found, "nbytes"), number(found, "copy_of")) == (7 * 4096, begin)


def test_channels_and_columns_that_were_repeated_on_purpose_are_no_error(tmp_path: Path) -> None:
    torch.manual_seed(0)
    # A first layer for three channels, given thirteen; a layer whose inputs were doubled.
    patches = torch.randn(8, 3, 16, 16)[:, [i % 3 for i in range(13)]]
    columns = torch.randn(30, 1024).repeat(1, 2)
    found = observe(tmp_path, {"patch.weight": patches, "fc.weight": columns}, *KINDS)
    assert [f.severity for f in found if f.severity is not Severity.NOTICE] == []
