"""Which rows are read, in which order, and which of them are marked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inspector.errors import UsageError
from inspector.health.roles import Role
from inspector.projections import find_tensor, head_labels, points_of
from inspector.projector import rows
from inspector.projector.rows import may_be_projected, proposed_tensor, read_points
from tests.projector.making import saved


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 3), (4, 3, 2, 5)])
@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32])
def test_rows_along_every_axis_are_numpys(
    shape: tuple[int, ...], kind: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = (100 * torch.randn(shape, generator=torch.Generator().manual_seed(0))).to(kind)
    checkpoint = saved({"a.weight": tensor})
    wanted = tensor.double().numpy()
    # Chunks that end inside of rows, and rows that are longer than a chunk.
    for at_once in (1, 7, 1 << 18):
        monkeypatch.setattr(rows, "_AT_ONCE", at_once)
        for axis in range(len(shape)):
            found = read_points(checkpoint, checkpoint.tensors[0], axis=axis)
            assert np.array_equal(found.values, np.moveaxis(wanted, axis, 0).reshape(shape[axis], -1))
            assert found.numbers.tolist() == list(range(shape[axis])) and found.total == shape[axis]


def test_an_even_sample_is_read_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.arange(2000.0).reshape(1000, 2)
    checkpoint = saved({"a.weight": tensor})
    monkeypatch.setattr(rows, "_AT_ONCE", 33)
    found = read_points(checkpoint, checkpoint.tensors[0], most=7)
    assert found.numbers.tolist() == [0, 142, 285, 428, 571, 714, 857]
    assert np.array_equal(found.values, tensor.numpy()[found.numbers]) and found.total == 1000
    assert found.notes == ("An even sample of 7 of the 1,000 rows was read.",)
    across = read_points(saved({"a.weight": tensor.T.contiguous()}), checkpoint.tensors[0], axis=0, most=7)
    assert across.notes and len(read_points(checkpoint, checkpoint.tensors[0]).notes) == 0


def test_wide_rows_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = saved({"a.weight": torch.randn(40, 10)})
    monkeypatch.setattr(rows, "MOST_NUMEL", 100)
    assert len(read_points(checkpoint, checkpoint.tensors[0]).values) == 10
    monkeypatch.setattr(rows, "MOST_NUMEL", 15)
    with pytest.raises(UsageError, match="10 numbers, which is too long"):
        read_points(checkpoint, checkpoint.tensors[0])


def test_rows_with_nan_are_left_out_and_told() -> None:
    tensor = torch.randn(8, 4)
    tensor[2, 1], tensor[5, 0] = float("nan"), float("inf")
    checkpoint = saved({"a.weight": tensor})
    found = read_points(checkpoint, checkpoint.tensors[0])
    assert found.not_finite == (2, 5) and found.numbers.tolist() == [0, 1, 3, 4, 6, 7]
    assert np.isfinite(found.values).all()


def test_rows_that_no_training_reached_are_marked() -> None:
    """The health check's own rule: rows as long as at their beginning, while the others moved."""
    torch.manual_seed(0)
    table = torch.randn(400, 256) * 0.1
    table[350:] = torch.randn(50, 256)
    checkpoint = saved({"embed_tokens.weight": table, "layer.weight": torch.randn(64, 64)})
    found = points_of(checkpoint, checkpoint.tensors[0])
    assert found.marked_as == "untrained" and np.flatnonzero(found.marked).tolist() == list(range(350, 400))
    assert "as long as when they were made" in found.marked_how
    quiet = points_of(
        saved({"embed_tokens.weight": table[:350]}), saved({"embed_tokens.weight": table[:350]}).tensors[0]
    )
    assert not quiet.marked.any() and quiet.marked_how == ""


def test_dead_filters_are_marked() -> None:
    weight = torch.randn(32, 4, 3, 3, generator=torch.Generator().manual_seed(1))
    weight[[3, 9]] = 0
    weight[20] *= 1e-5
    checkpoint = saved({"conv.weight": weight, "conv.bias": torch.zeros(32)})
    found = points_of(checkpoint, checkpoint.tensors[0])
    assert found.noun == "filter" and found.marked_as == "dead"
    assert np.flatnonzero(found.marked).tolist() == [3, 9, 20]
    assert points_of(checkpoint, checkpoint.tensors[0], axis=1).noun == "input channel"


def test_a_transposed_convolution_puts_out_along_axis_1() -> None:
    checkpoint = saved({"up.weight": torch.randn(6, 8, 2, 2)})
    assert read_points(checkpoint, checkpoint.tensors[0], role=Role.TRANSPOSED).total == 8


def test_quantised_numbers_are_read_and_not_judged() -> None:
    table = torch.quantize_per_tensor(torch.randn(20, 8), 0.1, 0, torch.qint8)
    checkpoint = saved({"a.weight": table})
    found = points_of(checkpoint, checkpoint.tensors[0])
    assert np.allclose(found.values, table.dequantize().numpy(), atol=1e-6)
    assert found.marked_as == "" and "not judged" in found.notes[-1]


@pytest.mark.parametrize(
    ("tensor", "fits"),
    [
        (torch.zeros(3), False),
        (torch.zeros(4, 3), True),
        (torch.zeros(1, 9), False),
        (torch.zeros(9, 1), False),
        (torch.zeros(4, 3, dtype=torch.bool), False),
        (torch.zeros(4, 3, dtype=torch.complex64), False),
        (torch.zeros(0, 3), False),
        (torch.tensor(1.0), False),
    ],
)
def test_what_has_rows(tensor: torch.Tensor, fits: bool) -> None:
    checkpoint = saved({"a": tensor})
    assert may_be_projected(checkpoint.tensors[0]) is fits
    if not fits:
        with pytest.raises(UsageError, match="no rows of plain numbers"):
            read_points(checkpoint, checkpoint.tensors[0])


def test_an_axis_that_there_is_not() -> None:
    checkpoint = saved({"a.weight": torch.zeros(4, 3)})
    with pytest.raises(UsageError, match="axes 0 to 1; there is no axis 2"):
        read_points(checkpoint, checkpoint.tensors[0], axis=2)


def test_the_embedding_is_proposed_else_the_matrix_with_the_most_rows() -> None:
    from inspector.health.roles import roles_of

    names = {"wte.weight": (50, 8), "fc.weight": (500, 8), "head.weight": (4, 8), "b": (9,)}
    checkpoint = saved({name: torch.zeros(shape) for name, shape in names.items()})
    found = proposed_tensor(checkpoint.tensors, dict(roles_of(checkpoint.tensors)))
    assert found is not None and found.name == "wte.weight"
    rest = [t for t in checkpoint.tensors if t.name != "wte.weight"]
    found = proposed_tensor(rest, dict(roles_of(rest)))
    assert found is not None and found.name == "fc.weight"
    assert proposed_tensor([], {}) is None


def test_names_of_classes_are_the_heads_alone() -> None:
    tensors = {"a.weight": torch.randn(3, 8), "head.weight": torch.randn(3, 8), "head.bias": torch.randn(3)}
    buffer = saved({**tensors, "classes": ["cat", "dog", "owl"]})  # type: ignore[dict-item]
    head, other = find_tensor(buffer, "head.weight"), find_tensor(buffer, "a.weight")
    assert head_labels(buffer, None, head) == ("cat", "dog", "owl")
    assert head_labels(buffer, None, other) == () and head_labels(buffer, None, head, axis=1) == ()


def test_a_tensor_that_there_is_not_has_close_names() -> None:
    with pytest.raises(UsageError, match=r"'heed.weight' there. Close: head.weight"):
        find_tensor(saved({"head.weight": torch.zeros(2, 2)}), "heed.weight")


def test_a_row_of_zeros_beside_equal_rows_is_dead() -> None:
    table = torch.randn(300, 64, generator=torch.Generator().manual_seed(0))
    table[20:40] = table[19]
    table[7] = 0
    found = points_of(saved({"emb.weight": table}), saved({"emb.weight": table}).tensors[0])
    assert np.flatnonzero(found.marked).tolist() == [7, *range(19, 40)]
    assert found.marked_how == "are all the same, 1 beside them all zero"
    # Alone it is the padding token's.
    table[19:40] = torch.randn(21, 64, generator=torch.Generator().manual_seed(1))
    quiet = points_of(saved({"emb.weight": table}), saved({"emb.weight": table}).tensors[0])
    assert not quiet.marked.any()
