"""NaN and infinity: where, how many, and where they are meant."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only

NAN, INF = float("nan"), float("inf")


def test_the_first_place_is_told_in_coordinates(tmp_path: Path) -> None:
    weight = torch.randn(4, 6, 3, 3)
    weight[3, 5, 1, 1] = NAN
    weight[3, 5, 2, 0] = INF
    found = only(observe(tmp_path, {"conv.weight": weight}, "non-finite"))
    assert found.severity is Severity.ERROR
    assert found.says == ("conv.weight holds 1 NaN (0.5 %) and 1 infinite number among 216, the first at [3, 5, 1, 1].")
    assert number(found, "first") == 3 * 54 + 5 * 9 + 4


def test_tensors_are_grouped_by_severity(tmp_path: Path) -> None:
    state = {f"layers.{i}.fc.weight": torch.full((4, 4), NAN) for i in range(5)}
    state["attn.mask"] = torch.full((4, 4), -INF).triu(1)
    error, note = observe(tmp_path, state, "non-finite")
    assert (error.severity, note.severity) == (Severity.ERROR, Severity.NOTICE)
    assert error.says.endswith("layers.3.fc.weight (16 NaN (100 %), the first at [0, 0]) and 1 more.")
    assert len(error.subjects) == 5 and number(error, "nan") == 80
    assert note.subjects == ("attn.mask",) and number(note, "infinite") == 6


def test_each_tensor_is_told_with_what_it_holds(tmp_path: Path) -> None:
    first, second, third = torch.randn(4, 6), torch.randn(4, 8), torch.randn(4, 5)
    first[1, 2], second[2], third[0, 0], third[0, 1] = NAN, INF, NAN, -INF
    found = only(observe(tmp_path, {"a.weight": first, "b.weight": second, "c.weight": third}, "non-finite"))
    assert found.says == (
        "a.weight holds 1 NaN (4.2 %) among 24, the first at [1, 2]; "
        "also b.weight (8 infinite numbers, the first at [2, 0]), "
        "c.weight (1 NaN (5.0 %) and 1 infinite number, the first at [0, 0])."
    )


def test_a_best_loss_not_yet_beaten_is_a_note_and_a_scale_of_nan_an_error(tmp_path: Path) -> None:
    assert only(observe(tmp_path, {"best_loss": torch.tensor(INF)})).severity is Severity.NOTICE
    assert only(observe(tmp_path, {"logit_scale": torch.tensor(NAN)})).severity is Severity.ERROR


def test_observers_that_saw_nothing_are_a_note(tmp_path: Path) -> None:
    state = {"act.min_val": torch.tensor([INF]), "act.max_val": torch.tensor([-INF])}
    assert only(observe(tmp_path, state)).severity is Severity.NOTICE


def test_integers_and_finite_numbers_are_left_alone(tmp_path: Path) -> None:
    state = {"ids": torch.tensor([2**62, -(2**62)]), "fc.weight": torch.randn(4, 4)}
    assert observe(tmp_path, state, "non-finite") == ()


def test_nan_in_a_mask_is_an_error(tmp_path: Path) -> None:
    state = {"attn.mask": torch.full((4, 4), -INF).triu(1) * 0}
    assert only(observe(tmp_path, state, "non-finite")).severity is Severity.ERROR


def _causal(n: int, hidden: float = -INF) -> torch.Tensor:
    return torch.full((n, n), hidden).triu(1)


@pytest.mark.parametrize("name", ["tril", "bias", "causal", "attn_bias", "m", "w", "weight"])
def test_a_triangle_of_zeros_and_infinities_is_a_mask_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    state = {f"blocks.0.attn.{name}": _causal(16), "fc.weight": torch.randn(4, 4)}
    assert only(observe(tmp_path, state, "non-finite")).severity is Severity.NOTICE


def test_bands_and_squares_of_squares_are_masks_too(tmp_path: Path) -> None:
    band = _causal(16) + torch.full((16, 16), -INF).tril(-4).nan_to_num(0, neginf=-INF)
    state = {
        "blocks.0.m": band,
        "blocks.1.m": _causal(8).expand(2, 1, 8, 8).clone(),
        "blocks.2.m": _causal(8).T.clone(),
    }
    found = only(observe(tmp_path, state, "non-finite"))
    assert found.severity is Severity.NOTICE and len(found.subjects) == 3


def test_a_mask_of_a_types_least_number_is_no_large_weight(tmp_path: Path) -> None:
    least = torch.finfo(torch.float32).min
    assert observe(tmp_path, {"blocks.0.m": _causal(16, least)}, "large-weight", "half-precision-overflow") == ()
    odd = _causal(16, least)
    odd[3, 3] = least
    assert observe(tmp_path, {"blocks.0.m": odd}, "large-weight")


def _one_in(n: int, row: int, column: int, value: float, rest: float = 0.0) -> torch.Tensor:
    made = torch.full((n, n), rest)
    made[row, column] = value
    return made


@pytest.mark.parametrize(
    "weight",
    [
        _one_in(16, 3, 4, INF, 0.5),
        _one_in(16, 3, 4, -INF),
        _one_in(16, 0, 15, -INF),
        _one_in(2, 0, 1, -INF),
        -_causal(16),
        torch.full((16, 16), -INF).triu(0),
        torch.full((8, 16), -INF).triu(1),
        torch.cat([_causal(8)[None], _causal(8).T[None]]),
    ],
    ids=["one", "one-of-zeros", "a-corner", "2x2", "plus", "the-diagonal", "no-square", "two-that-differ"],
)
def test_what_is_no_triangle_stays_an_error(tmp_path: Path, weight: torch.Tensor) -> None:
    assert only(observe(tmp_path, {"fc.weight": weight}, "non-finite")).severity is Severity.ERROR
